"""`berth keys`: API keys, and their bounds within a tenant."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.answers import api, await_answer, items, report, report_once
from cli.api.http import part
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, table

keys = typer.Typer(no_args_is_help=True, help="API keys: list, create, delete.")


@keys.command("list")
def list_(
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.")] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List the keys that are not revoked, with role and bounds; no secret is stored."""
    rows = items(api(data).get("/v1/keys", {"tenant": tenant}))
    if as_json:
        emit(rows)
        return
    columns = ("KEY", "ROLE", "TENANT", "USER", "POOLS", "HIGHEST CLASS", "JOB GPUS", "MODELS")
    names = ("key_id", "role", "tenant", "user", "pools", "highest_class", "max_job_gpus", "models")
    table(columns, ([row[name] for name in names] for row in rows), "no keys")


@keys.command()
def create(
    tenant: Annotated[
        str | None, typer.Option(help="Tenant of the key; none for an operator key.")
    ] = None,
    role: Annotated[
        str, typer.Option(help="Role: viewer, submitter, operator or admin.")
    ] = "submitter",
    key_id: Annotated[
        str | None, typer.Option("--id", help="Key id, the public part of the key.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="LLM model that it may call; may be repeated; all if none is given."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Person or robot that its jobs belong to; else they name it.")
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(help="Pool that it may use; may be repeated; the tenant's if none is given."),
    ] = None,
    highest_class: Annotated[
        str | None, typer.Option(help="Highest priority class of its jobs.")
    ] = None,
    max_job_gpus: Annotated[
        float | None, typer.Option(min=0, help="Most GPUs of one of its jobs.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Create an API key; it is shown once and not stored."""
    client = api(data)
    path = f"/v1/tenants/{part(tenant)}/keys" if tenant else "/v1/keys"
    body = {
        "role": role,
        "key_id": key_id,
        "models": model or None,
        "user": user,
        "pools": pool or None,
        "highest_class": highest_class,
        "max_job_gpus": max_job_gpus,
    }
    ticket = client.post(path, {name: value for name, value in body.items() if value is not None})
    await_answer(client, ticket)
    report_once(as_json, ticket, str(ticket["key"]))


@keys.command()
def revoke(
    key_id: Annotated[
        str, typer.Argument(help="Key id, the public part of the key.", metavar="KEY")
    ],
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Revoke an API key."""
    client = api(data)
    answer = await_answer(client, client.delete(f"/v1/keys/{part(key_id)}"))
    report(as_json, answer, f"{key_id}: revoked")


keys.command("delete", help="Revoke an API key, as `revoke` does.")(revoke)
