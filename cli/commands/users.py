"""`berth users`: the users of tenants, each of which is the user of one key or more."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from cli.api.answers import api, await_answer, items, report, report_once
from cli.api.http import Api, Json, part
from cli.errors import BadInput, NotFound
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, table

users = typer.Typer(no_args_is_help=True, help="Users of tenants: list, create, set, delete, mail.")

UserArgument = Annotated[str, typer.Argument(help="Person or robot.", metavar="USER")]
Tenant = Annotated[str, typer.Option(help="Tenant of the user.")]
Role = Annotated[str, typer.Option(help="Role: viewer or submitter.")]
Pools = Annotated[
    list[str] | None, typer.Option("--pool", help="Pool that the user may use; may be repeated.")
]
HighestClass = Annotated[str | None, typer.Option(help="Highest priority class of its jobs.")]
JobGpus = Annotated[float | None, typer.Option(min=0, help="Most GPUs of one of its jobs.")]


@users.command("list")
def list_(
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.")] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List the users that keys name, with the keys and bounds of each.

    Users whom tokens of a single sign-on name are those of the identity provider.
    """
    rows = [row for row in items(api(data).get("/v1/keys", {"tenant": tenant})) if row["user"]]
    rows.sort(key=lambda row: (str(row["tenant"]), str(row["user"]), str(row["key_id"])))
    if as_json:
        emit(rows)
        return
    names = ("user", "tenant", "role", "pools", "highest_class", "max_job_gpus", "key_id")
    columns = ("USER", "TENANT", "ROLE", "POOLS", "HIGHEST CLASS", "JOB GPUS", "KEY")
    table(columns, ([row[name] for name in names] for row in rows), "no users")


@users.command()
def create(
    user: UserArgument,
    tenant: Tenant,
    role: Role = "submitter",
    pool: Pools = None,
    highest_class: HighestClass = None,
    max_job_gpus: JobGpus = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Create a user with a key; the key is shown once and not stored."""
    client = api(data)
    if _keys_of(client, tenant, user):
        raise BadInput(f"the user exists: {user} of {tenant}; `berth users set` changes it")
    bounds = _bounds(role, pool, highest_class, max_job_gpus)
    receipt = _create_key(client, user, tenant, bounds)
    report_once(as_json, receipt, str(receipt["key"]))


@users.command("set")
def set_(
    user: UserArgument,
    tenant: Tenant,
    role: Annotated[str | None, typer.Option(help="Role: viewer or submitter.")] = None,
    pool: Pools = None,
    highest_class: HighestClass = None,
    max_job_gpus: JobGpus = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Replace the key of a user by one with other bounds; what is not named stays.

    Keys never change: the new one is shown once, then the one before it is revoked.
    """
    client = api(data)
    before = _require_keys(client, tenant, user)
    named = _bounds(role, pool, highest_class, max_job_gpus)
    if not named:
        raise BadInput("no bound; --role, --pool, --highest-class or --max-job-gpus is allowed")
    if len(before) > 1:
        ids = ", ".join(str(row["key_id"]) for row in before)
        raise BadInput(f"{user} has several keys: {ids}; `berth keys delete` all but one first")
    kept = ("role", "pools", "highest_class", "max_job_gpus", "models")
    had = {name: before[0][name] for name in kept if before[0][name] not in (None, [])}
    receipt = _create_key(client, user, tenant, {**had, **named})
    report_once(as_json, receipt, str(receipt["key"]))
    _revoke(client, str(before[0]["key_id"]))


@users.command()
def delete(user: UserArgument, tenant: Tenant, as_json: AsJson = False, data: Data = None) -> None:
    """Revoke every key of a user and delete its address; its jobs go on."""
    client = api(data)
    revoked = [str(row["key_id"]) for row in _require_keys(client, tenant, user)]
    for key_id in revoked:
        _revoke(client, key_id)
    with suppress(NotFound):
        client.delete(f"/v1/users/{part(user)}/mail", {"tenant": tenant})
    report(as_json, {"user": user, "revoked": revoked}, f"{user}: deleted")


@users.command()
def mail(
    user: UserArgument,
    address: Annotated[str | None, typer.Argument(help="Mail address.", metavar="ADDRESS")] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Tenant of the user; that of the key if not given.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the address.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Set the address for mails about the user's jobs; it is encrypted and not shown again.

    Users set their own address, operators that of every user; `berth submit --notify` uses it.
    """
    if (address is None) != remove:
        raise BadInput("one of ADDRESS and --remove is needed")
    client, path, query = api(data), f"/v1/users/{part(user)}/mail", {"tenant": tenant}
    if address is None:
        report(as_json, client.delete(path, query), f"{user}: address deleted")
    else:
        report(as_json, client.put(path, {"address": address}, query), f"{user}: address set")


def _keys_of(client: Api, tenant: str, user: str) -> list[Json]:
    rows = items(client.get("/v1/keys", {"tenant": tenant}))
    return [row for row in rows if row["user"] == user]


def _require_keys(client: Api, tenant: str, user: str) -> list[Json]:
    if not (rows := _keys_of(client, tenant, user)):
        raise NotFound(f"no such user: {user} of {tenant}; `berth users create` creates it")
    return rows


def _bounds(
    role: str | None, pools: list[str] | None, highest_class: str | None, gpus: float | None
) -> Json:
    named: Json = {
        "role": role,
        "pools": pools or None,
        "highest_class": highest_class,
        "max_job_gpus": gpus,
    }
    return {name: value for name, value in named.items() if value is not None}


def _create_key(client: Api, user: str, tenant: str, bounds: Json) -> Json:
    receipt = client.post(f"/v1/tenants/{part(tenant)}/keys", {"user": user, **bounds})
    await_answer(client, receipt)
    return receipt


def _revoke(client: Api, key_id: str) -> None:
    await_answer(client, client.delete(f"/v1/keys/{part(key_id)}"))
