"""`berth tenants`: tenants, their bounds, quota and Kafka users."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.api.answers import api, await_answer, items, pages, report, report_once
from cli.api.http import Api, Json, part, pool_field
from cli.api.target import data_dir
from cli.errors import BadInput, NotFound, Refused
from cli.input.arguments import AsJson, Data, Limit, OnlyPool
from cli.text.output import emit, report_line, table
from cli.text.times import fields_of, span

tenants = typer.Typer(
    no_args_is_help=True,
    help="Tenants: list, show, shares, create, set, delete, bounds, quota, kafka users.",
)

UNLIMITED = "unlimited"
Bound = Annotated[str | None, typer.Option(help="Borrowable GPUs, or `unlimited`.", metavar="GPUS")]
SpotBound = Annotated[
    str | None,
    typer.Option(help="Spot GPUs, or `unlimited`: the pool's bound decides.", metavar="GPUS"),
]
TenantArgument = Annotated[str, typer.Argument(help="Tenant.", metavar="TENANT")]


@tenants.command("list")
def list_(limit: Limit = 1000, as_json: AsJson = False, data: Data = None) -> None:
    """List tenants with their GPU time and job counts."""
    rows = pages(api(data), "/v1/tenants", {}, limit)
    if as_json:
        emit(rows)
        return
    columns = (
        "TENANT",
        "NUMBER",
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
    head = ("tenant", "number", "default_pool", "weight", "active")
    cells = (
        (*(row[n] for n in head), span(row["gpu_ms"]), *(row[n] for n in names)) for row in rows
    )
    table(columns, cells, "no tenants")


@tenants.command()
def show(tenant: TenantArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show a tenant with its quota in each pool, its bounds and their use."""
    document = api(data).get(f"/v1/tenants/{part(tenant)}")
    if as_json:
        emit(document)
    else:
        table(("FIELD", "VALUE"), fields_of(document))


@tenants.command()
def shares(pool: OnlyPool = None, as_json: AsJson = False, data: Data = None) -> None:
    """Show what each tenant may expect of a pool by its weight, beside what it holds and used.

    DECAYED are GPU hours, of which each half-life of the pool takes half; FACTOR is Slurm's: 1
    without use, 0.5 where use and share are even.
    """
    rows = items(api(data).get("/v1/shares", {"pool": pool}))
    if as_json:
        emit(rows)
        return
    names = (
        *("pool", "tenant", "weight", "share", "entitled_gpus", "guaranteed_gpus", "used_gpus"),
        *("waiting_gpus", "decayed_gpu_hours", "use_share", "factor"),
    )
    heads = (name.upper().replace("_", " ").removesuffix(" GPU HOURS") for name in names)
    table(tuple(heads), ([_rounded(row[name]) for name in names] for row in rows), "no tenants")


def _rounded(cell: object) -> object:
    return f"{cell:.3g}" if isinstance(cell, float) else cell


@tenants.command()
def add(
    tenant: TenantArgument,
    pool: Annotated[str, typer.Option(help="Default pool of its jobs.")],
    weight: Annotated[float, typer.Option(help="Fair-share weight, above 0.")] = 1.0,
    llm_weight: Annotated[
        float, typer.Option(help="Weight among the tenants of LLM endpoints, above 0.")
    ] = 1.0,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Register a tenant, and create its topics if the broker is reachable."""
    client = api(data)
    settings: Json = {"default_pool": pool, "weight": weight, "llm_weight": llm_weight}
    _check_new(client, tenant, settings)
    body = {"tenant": tenant, **settings}
    answer = await_answer(client, client.post("/v1/tenants", body))
    topics = create_topics(tenant, data)
    report(
        as_json,
        {**answer, "topics": topics},
        f"{tenant} registered with default pool {pool}",
        *topics,
    )


def _check_new(client: Api, tenant: str, settings: Json) -> None:
    """Raise Refused for a tenant that exists with other settings: `add` does not change one."""
    try:
        row = client.get(f"/v1/tenants/{part(tenant)}")
    except NotFound:
        return
    other = [f"{name} {row[name]}" for name, value in settings.items() if row[name] != value]
    if row["active"] and other:
        rule = "`berth tenants set` changes it"
        raise Refused(f"the tenant exists with {', '.join(other)}: {tenant}; {rule}")


@tenants.command("set")
def set_(
    tenant: TenantArgument,
    pool: Annotated[str | None, typer.Option(help="Default pool of its jobs.")] = None,
    weight: Annotated[float | None, typer.Option(help="Fair-share weight, above 0.")] = None,
    llm_weight: Annotated[
        float | None, typer.Option(help="Weight among the tenants of LLM endpoints, above 0.")
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Argument(
            help="Bounds: `berth tenants bounds` lists them; `null` is the default.",
            metavar="[NAME=VALUE...]",
        ),
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Change the named settings and bounds of a tenant; the others stay as they are."""
    from cli.input.assignments import parse_assignments
    from shared.contracts.bounds import TenantBounds

    options = {"default_pool": pool, "weight": weight, "llm_weight": llm_weight}
    changes: dict[str, object] = {n: value for n, value in options.items() if value is not None}
    changes |= parse_assignments(bounds or [], TenantBounds)
    if not changes:
        raise BadInput("no setting; --pool, --weight, --llm-weight or NAME=VALUE is allowed")
    client = api(data)
    answer = await_answer(client, client.patch(f"/v1/tenants/{part(tenant)}", changes))
    texts = ", ".join(f"{name}: {value}" for name, value in changes.items())
    report(as_json, answer, f"{tenant}: {texts}")


@tenants.command("bounds")
def bounds_(as_json: AsJson = False) -> None:
    """List the bounds that a tenant may have, with their defaults and meanings."""
    from cli.text.bounds import show_bounds
    from shared.contracts.bounds import TenantBounds

    show_bounds(TenantBounds, as_json)


def create_topics(tenant: str, data: Path | None) -> list[str]:
    """Create the missing topics of a tenant; return their names."""
    from cli.stack.bring_up import make_topics
    from infra.supervisor.running import NoStack, load

    try:
        stack = load(data_dir(data))
    except NoStack:
        report_line("topics not created: no stack on this machine")
        return []
    return make_topics(stack, [tenant])


@tenants.command()
def retire(tenant: TenantArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Retire a tenant: refuse its submissions, remove secrets and Kafka user; jobs continue."""
    client = api(data)
    answer = await_answer(client, client.delete(f"/v1/tenants/{part(tenant)}"))
    gone = remove_kafka_user(tenant, data)
    removed = [f"Kafka user removed: {gone}"] if gone else []
    report(as_json, {**answer, "kafka_user": gone}, f"{tenant}: retired", *removed)


def remove_kafka_user(tenant: str, data: Path | None) -> str:
    """Remove the tenant's Kafka user; return its name, empty if it had none."""
    from cli.stack.tenant_user import remove_user, user_of
    from infra.supervisor.running import NoStack, load

    try:
        stack = load(data_dir(data))
    except NoStack:
        report_line("Kafka user not removed: no stack on this machine")
        return ""
    return user_of(tenant) if stack.secrets is not None and remove_user(stack, tenant) else ""


tenants.command("create", help="Register a tenant, as `add` does.")(add)
tenants.command("delete", help="Retire a tenant, as `retire` does: its name and uid stay.")(retire)


@tenants.command("kafka-user")
def kafka_user(
    tenant: TenantArgument,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the settings to this file (mode 0600) instead of printing them."),
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Create or renew a tenant's Kafka user; an earlier password is revoked."""
    from cli.stack.tenant_user import client_settings, store
    from infra.supervisor.running import load

    api(data).get(f"/v1/tenants/{part(tenant)}")
    settings = client_settings(load(data_dir(data)), tenant)
    if out is not None:
        store(out, settings)
        report(as_json, {"user": settings["user"], "file": str(out)}, f"stored in {out}")
        return
    report_once(as_json, dict(settings), *(f"{name}\t{value}" for name, value in settings.items()))


@tenants.command("kafka-revoke")
def kafka_revoke(tenant: TenantArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Remove a tenant's Kafka user; API access is unchanged."""
    from cli.stack.tenant_user import remove_user, user_of
    from infra.supervisor.running import load

    if not remove_user(load(data_dir(data)), tenant):
        raise NotFound(f"no Kafka user: {tenant}")
    user = user_of(tenant)
    report(as_json, {"user": user}, f"{user}: removed from Kafka")


@tenants.command()
def quota(
    tenant: TenantArgument,
    guaranteed: Annotated[float | None, typer.Option(min=0, help="Guaranteed GPUs.")] = None,
    borrow: Bound = None,
    spot: SpotBound = None,
    pool: Annotated[str | None, typer.Option(help="Pool; defaults to the tenant's pool.")] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Set what is named of a tenant's quota in a pool; the rest stays as it is."""
    options = {"guaranteed_gpus": guaranteed, "borrow_gpus": borrow, "spot_gpus": spot}
    named = {name: value for name, value in options.items() if value is not None}
    if not named:
        raise BadInput("no bound; --guaranteed, --borrow or --spot is allowed")
    changes = {name: gpus_of(name, value) for name, value in named.items()}
    client, path = api(data), f"/v1/tenants/{part(tenant)}/quota"
    body = {**changes, **pool_field(pool)}
    # The whole quota can be read by the release before, too.
    send = client.post if len(changes) == len(options) else client.patch
    answer = await_answer(client, send(path, body))
    texts = (f"{name}: {UNLIMITED if gpus is None else gpus}" for name, gpus in changes.items())
    report(as_json, answer, f"{tenant}: {', '.join(texts)}")


def gpus_of(name: str, value: object) -> float | None:
    """Return a bound in GPUs, None for `unlimited`. Raises BadInput."""
    if value == UNLIMITED:
        return None
    try:
        return float(str(value))
    except ValueError:
        rule = f"a number of GPUs or `{UNLIMITED}` is allowed"
        raise BadInput(f"{name}: {value}; {rule}") from None
