"""`berth users`: the users of tenants, their bounds, keys and addresses."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from cli.api.answers import api, await_answer, items, pages, report, report_once
from cli.api.http import Json, part
from cli.errors import BadInput
from cli.input.arguments import AsJson, Data, Limit
from cli.text.output import emit, table
from cli.text.times import span

users = typer.Typer(
    no_args_is_help=True, help="Users of tenants: list, create, set, bounds, delete, mail."
)

UserArgument = Annotated[str, typer.Argument(help="Person or robot.", metavar="USER")]
Tenant = Annotated[str, typer.Option(help="Tenant of the user.")]
Pools = Annotated[
    list[str] | None, typer.Option("--pool", help="Pool that the user may use; may be repeated.")
]
HighestClass = Annotated[str | None, typer.Option(help="Highest priority class of its jobs.")]
JobGpus = Annotated[float | None, typer.Option(min=0, help="Most GPUs of one of its jobs.")]
Bounds = Annotated[
    list[str] | None,
    typer.Argument(
        help="Bounds: `berth users bounds` lists them; `null` is the default.",
        metavar="[NAME=VALUE...]",
    ),
]


@users.command("list")
def list_(
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.")] = None,
    limit: Limit = 1000,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List users with their use, keys and bounds: the registered ones, and those that keys name.

    Users whom tokens of a single sign-on name are listed once they are registered.
    """
    rows = pages(api(data), "/v1/users", {"tenant": tenant}, limit)
    if as_json:
        emit(rows)
        return
    columns = ("USER", "TENANT", "OPEN JOBS", "RUNNING", "GPUS", "GPU TIME", "KEYS", "BOUNDS")
    table(columns, (_cells(row) for row in rows), "no users")


def _cells(row: Json) -> tuple[object, ...]:
    from shared.contracts.bounds import UserBounds

    use, named = cast("Json", row["use"]), cast("Json", row["bounds"])
    defaults = UserBounds().model_dump(mode="json")
    bounds = {name: value for name, value in named.items() if value != defaults.get(name)}
    texts = " ".join(f"{name}={_text(value)}" for name, value in bounds.items())
    return (
        *(row["user"], row["tenant"], use["open_jobs"], use["running"], use["gpus"]),
        *(span(use["gpu_ms"]), row["keys"], texts if row["registered"] else "not registered"),
    )


def _text(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


@users.command()
def create(
    user: UserArgument,
    tenant: Tenant,
    bounds: Bounds = None,
    role: Annotated[str, typer.Option(help="Role of its key: viewer or submitter.")] = "submitter",
    pool: Pools = None,
    highest_class: HighestClass = None,
    max_job_gpus: JobGpus = None,
    with_key: Annotated[
        bool, typer.Option("--key/--no-key", help="Make a key for it; else it has one, or tokens.")
    ] = True,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Register a user with its bounds, and make its key, which is shown once and not stored.

    Where keys name the user already, no further one is made.
    """
    client = api(data)
    rows = items(client.get("/v1/keys", {"tenant": tenant}))
    keys = [str(row["key_id"]) for row in rows if row["user"] == user]
    requested = _bounds(bounds, pool, highest_class, max_job_gpus)
    named = {name: value for name, value in requested.items() if value is not None}
    receipt = client.post("/v1/users", {"user": user, **named}, {"tenant": tenant})
    await_answer(client, receipt)
    if keys or not with_key:
        kept = f"; its keys: {', '.join(keys)}" if keys else ""
        report(as_json, receipt, f"{user} of {tenant}: registered{kept}")
        return
    receipt = client.post(f"/v1/tenants/{part(tenant)}/keys", {"user": user, "role": role})
    await_answer(client, receipt)
    report_once(as_json, receipt, str(receipt["key"]))


@users.command("set")
def set_(
    user: UserArgument,
    tenant: Tenant,
    bounds: Bounds = None,
    pool: Pools = None,
    highest_class: HighestClass = None,
    max_job_gpus: JobGpus = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Change the named bounds of a user; the others, and its keys, stay as they are."""
    changes = _bounds(bounds, pool, highest_class, max_job_gpus)
    if not changes:
        raise BadInput("no bound; NAME=VALUE, --pool, --highest-class or --max-job-gpus is allowed")
    client = api(data)
    receipt = client.patch(f"/v1/users/{part(user)}", changes, {"tenant": tenant})
    texts = ", ".join(f"{name}: {value}" for name, value in changes.items())
    report(as_json, await_answer(client, receipt), f"{user} of {tenant}: {texts}")


@users.command("bounds")
def bounds_(as_json: AsJson = False) -> None:
    """List the bounds that a user may have, with their defaults and meanings."""
    from cli.text.bounds import show_bounds
    from shared.contracts.bounds import UserBounds

    show_bounds(UserBounds, as_json)


@users.command()
def delete(user: UserArgument, tenant: Tenant, as_json: AsJson = False, data: Data = None) -> None:
    """Delete a user, its keys and its address; its jobs go on."""
    client = api(data)
    receipt = client.delete(f"/v1/users/{part(user)}", {"tenant": tenant})
    report(as_json, await_answer(client, receipt), f"{user} of {tenant}: deleted")


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


def _bounds(
    named: list[str] | None, pools: list[str] | None, highest_class: str | None, gpus: float | None
) -> Json:
    """Return the bounds that arguments and options name."""
    from cli.input.assignments import parse_assignments
    from shared.contracts.bounds import UserBounds

    options: Json = {"pools": pools or None, "highest_class": highest_class, "max_job_gpus": gpus}
    of_options = {name: value for name, value in options.items() if value is not None}
    return of_options | parse_assignments(named or [], UserBounds)
