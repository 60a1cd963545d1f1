"""`berth tenants` and `berth keys`: who may submit, how much, and what opens the API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import AsJson, Data
from cli.calls import answered, api, pages, report
from cli.http_api import part
from cli.output import emit, say, table
from cli.target import data_dir
from cli.times import span

tenants = typer.Typer(no_args_is_help=True, help="Tenants: list, add, retire, quota.")
keys = typer.Typer(no_args_is_help=True, help="API keys: create, revoke.")

TenantArgument = Annotated[str, typer.Argument(help="The tenant.", metavar="TENANT")]


@tenants.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 1000,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Tenants with what they used and how their jobs ended."""
    rows = pages(api(data), "/v1/tenants", {}, limit)
    if as_json:
        emit(rows)
        return
    columns = (
        "TENANT",
        "POOL",
        "WEIGHT",
        "ACTIVE",
        "GPU TIME",
        "SUCCEEDED",
        "FAILED",
        "CANCELLED",
        "PREEMPTED",
    )
    names = ("succeeded", "failed", "cancelled", "preempted")
    head = ("tenant", "default_pool", "weight", "active")
    found = (
        (*(row[n] for n in head), span(row["gpu_ms"]), *(row[n] for n in names)) for row in rows
    )
    table(columns, found, "no tenants")


@tenants.command()
def show(tenant: TenantArgument, as_json: AsJson = False, data: Data = None) -> None:
    """One tenant, with its quota in each pool."""
    found = api(data).get(f"/v1/tenants/{part(tenant)}")
    if as_json:
        emit(found)
    else:
        table(("FIELD", "VALUE"), found.items())


@tenants.command()
def add(
    tenant: TenantArgument,
    pool: Annotated[str, typer.Option(help="Where its jobs go that name none.")],
    weight: Annotated[float, typer.Option(min=0, help="Its share of the pool.")] = 1.0,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Let a tenant in, and make its topics where the broker is within reach."""
    client = api(data)
    wish = {"tenant": tenant, "default_pool": pool, "weight": weight}
    answer = answered(client, client.post("/v1/tenants", wish))
    made = _topics(tenant, data)
    report(as_json, {**answer, "topics": made}, f"{tenant} may submit to {pool}", *made)


def _topics(tenant: str, data: Path | None) -> list[str]:
    """Those that were missing; none where only the API is known."""
    from cli.bring_up import make_topics
    from infra.supervisor.running import NoStack, load

    try:
        stack = load(data_dir(data))
    except NoStack:
        say("its topics were not made: no stack of this machine is known")
        return []
    return make_topics(stack, [tenant])


@tenants.command()
def retire(tenant: TenantArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Take no more of a tenant's submissions, and its user from Kafka; what runs goes on."""
    client = api(data)
    answer = answered(client, client.delete(f"/v1/tenants/{part(tenant)}"))
    gone = _shut_out(tenant, data)
    said = [f"its Kafka user {gone} is gone"] if gone else []
    report(as_json, {**answer, "kafka_user": gone}, f"{tenant} may submit no more", *said)


def _shut_out(tenant: str, data: Path | None) -> str:
    """Its user that was removed; empty where it had none, or only the API is known."""
    from cli.tenant_user import shut_out, user_of
    from infra.supervisor.running import NoStack, load

    try:
        stack = load(data_dir(data))
    except NoStack:
        say("whether it has a user on Kafka is not known: no stack of this machine is")
        return ""
    return user_of(tenant) if stack.secrets is not None and shut_out(stack, tenant) else ""


@tenants.command("kafka-user")
def kafka_user(
    tenant: TenantArgument,
    out: Annotated[
        Path | None, typer.Option(help="Write it there (0600) instead of showing it once.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Let a tenant's programs into Kafka with a new password; one that it had ends."""
    from cli.tenant_user import entrance, keep
    from infra.supervisor.running import load

    api(data).get(f"/v1/tenants/{part(tenant)}")
    found = entrance(load(data_dir(data)), tenant)
    if out is not None:
        keep(out, found)
        report(as_json, {"user": found["user"], "file": str(out)}, f"kept in {out}")
        return
    if not as_json:
        say("shown this once:")
    report(as_json, dict(found), *(f"{name}\t{value}" for name, value in found.items()))


@tenants.command("kafka-revoke")
def kafka_revoke(tenant: TenantArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Take a tenant's user from Kafka; the right to submit through the API stays."""
    from cli.errors import NotFound
    from cli.tenant_user import shut_out, user_of
    from infra.supervisor.running import load

    if not shut_out(load(data_dir(data)), tenant):
        raise NotFound(f"{tenant} has no user on Kafka")
    user = user_of(tenant)
    report(as_json, {"user": user}, f"{user} may do nothing on Kafka any more")


@tenants.command()
def quota(
    tenant: TenantArgument,
    guaranteed: Annotated[float, typer.Option(min=0, help="GPUs, whatever others use.")],
    borrow: Annotated[float | None, typer.Option(min=0, help="GPUs above; absent: any.")] = None,
    spot: Annotated[float | None, typer.Option(min=0, help="Spot GPUs.")] = None,
    pool: Annotated[str | None, typer.Option(help="Default: the tenant's.")] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Set a tenant's shares of one pool."""
    given = {"guaranteed_gpus": guaranteed, "borrow_gpus": borrow, "spot_gpus": spot, "pool": pool}
    wish = {name: value for name, value in given.items() if value is not None}
    client = api(data)
    answer = answered(client, client.post(f"/v1/tenants/{part(tenant)}/quota", wish))
    report(as_json, answer, f"{tenant}: {guaranteed:g} GPUs guaranteed")


@keys.command()
def create(
    tenant: Annotated[str | None, typer.Option(help="Whose; absent for operators.")] = None,
    role: Annotated[str, typer.Option(help="viewer, submitter, operator or admin")] = "submitter",
    key_id: Annotated[str | None, typer.Option("--id", help="Its public first part.")] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Make a key; it is shown this once and kept nowhere."""
    client = api(data)
    path = f"/v1/tenants/{part(tenant)}/keys" if tenant else "/v1/keys"
    ticket = client.post(path, {"role": role, **({"key_id": key_id} if key_id else {})})
    answered(client, ticket)
    if not as_json:
        say("shown this once:")
    report(as_json, ticket, str(ticket["key"]))


@keys.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key's public first part.", metavar="KEY")],
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """The key opens nothing any more, within seconds."""
    client = api(data)
    answer = answered(client, client.delete(f"/v1/keys/{part(key_id)}"))
    report(as_json, answer, f"{key_id} opens nothing any more")
