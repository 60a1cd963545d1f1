"""`berth pools`: pools and their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

import typer

from cli.api.answers import api, await_answer, items, report
from cli.api.http import Api, Json, part
from cli.errors import BadInput, NotFound, Refused
from cli.input import assignments
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, report_line, table, text_of

pools = typer.Typer(no_args_is_help=True, help="Pools: list, show, create, set, delete, settings.")

PoolArgument = Annotated[str, typer.Argument(help="Pool.", metavar="POOL")]
Assignments = Annotated[
    list[str] | None,
    typer.Argument(help="Settings; `null` is the default of a setting.", metavar="NAME=VALUE..."),
]


@pools.command("list")
def list_(as_json: AsJson = False, data: Data = None) -> None:
    """List pools."""
    rows = _pools(api(data))
    if as_json:
        emit(rows)
        return
    names = ("backends", "base_policy", "learned", "queue_mode", "preemption", "stop_after_s")
    cells = ((row["pool"], *(_settings(row).get(name) for name in names)) for row in rows)
    table(("POOL", *(name.upper().replace("_", " ") for name in names)), cells, "no pools")


@pools.command()
def show(pool: PoolArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show a pool with all of its settings."""
    row = _find(_pools(api(data)), pool)
    if as_json:
        emit(row)
    else:
        table(("SETTING", "VALUE"), sorted(_settings(row).items()))


@pools.command()
def add(
    pool: PoolArgument, settings: Assignments = None, as_json: AsJson = False, data: Data = None
) -> None:
    """Create a pool; settings that are not named get their defaults."""
    changes = parse_assignments(settings or [])
    client = api(data)
    if any(row["pool"] == pool for row in _pools(client)):
        raise Refused(f"the pool exists: {pool}; `berth pools set` changes it")
    body = {**checked_settings(pool, changes), "if_version": "absent"}
    answer = await_answer(client, client.post("/v1/pools", body))
    report(as_json, answer, f"{pool}: created")


pools.command("create", help="Create a pool, as `add` does.")(add)


@pools.command("set")
def set_(
    pool: PoolArgument, settings: Assignments = None, as_json: AsJson = False, data: Data = None
) -> None:
    """Change settings of a pool; the others stay as they are.

    Of two changes at once both hold, where they name different settings.
    """
    changes = parse_assignments(settings or [])
    if not changes:
        raise BadInput("no setting; one NAME=VALUE or more are allowed")
    client = api(data)
    row = _find(_pools(client), pool)
    before = _settings(row)
    if early := early_changes(before, cast("int", row.get("release", 0)), changes):
        raise Refused(f"{', '.join(early)}: earlier releases lack it; `berth upgrade finish` first")
    checked_settings(pool, changes)
    answer = await_answer(client, client.patch(f"/v1/pools/{part(pool)}", changes))
    after = _settings(_find(_pools(client), pool))
    texts = (f"{n}: {text_of(before.get(n))} -> {text_of(after.get(n))}" for n in sorted(changes))
    report(as_json, answer, *texts)


@pools.command()
def delete(pool: PoolArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Delete a pool without open jobs, nodes, tenants, keys and join tokens.

    Its ended jobs stay. A pool that is added under its name has its quotas again.
    """
    client = api(data)
    _find(_pools(client), pool)
    answer = await_answer(client, client.delete(f"/v1/pools/{part(pool)}"))
    report(as_json, answer, f"{pool}: deleted")


@pools.command()
def settings(as_json: AsJson = False) -> None:
    """List the settings that a pool may have, with their defaults and meanings."""
    from shared.contracts.pools import PoolSettings

    rows: list[Json] = [
        {"setting": name, "default": field.default, "meaning": field.description}
        for name, field in PoolSettings.model_fields.items()
        if name != "pool"
    ]
    if as_json:
        emit(rows)
    else:
        table(("SETTING", "DEFAULT", "MEANING"), (tuple(row.values()) for row in rows))


def parse_assignments(words: Sequence[str]) -> Json:
    """Return the settings of a pool by name. Raises BadInput."""
    from shared.contracts.pools import PoolSettings

    return assignments.parse_assignments(words, PoolSettings, frozenset({"pool"}))


def early_changes(before: Mapping[str, object], release: int, changes: Json) -> list[str]:
    """Return the changed settings that wait for the end of the upgrade from this release."""
    from shared.contracts.pools import LEGACY_DEFAULTS
    from shared.contracts.releases import settings_above

    return [
        name
        for name in settings_above(release)
        if name in changes and changes[name] != before.get(name, LEGACY_DEFAULTS[name])
    ]


def checked_settings(pool: str, changes: Json) -> Json:
    """Return the body with these settings of a pool. Raises BadInput."""
    from shared.contracts.pools import ConfigurePool

    body = assignments.merge_settings(ConfigurePool, {"pool": pool}, changes)
    for setting in ("scheduler", "scheduler_shadow"):
        if scheduler := changes.get(setting):
            check_scheduler(setting, str(scheduler))
    return body


def check_scheduler(setting: str, name: str) -> None:
    """Say that a scheduler is not installed here; placement may have its package.

    Raises BadInput for one that decides what no pool carries out.
    """
    from shared.schedulers.in_pools import not_carried_out
    from shared.schedulers.registry import scheduler_classes

    own = scheduler_classes().get(name)
    if own is None:
        report_line(
            f"scheduler {name} is not installed here; `berth policies` lists those that are"
        )
    elif left := not_carried_out(own.decides):
        others = "`berth policies --pools` lists those of pools"
        raise BadInput(f"{setting}: {name} decides {', '.join(left)}, as no pool can; {others}")


def _pools(client: Api) -> list[Json]:
    return items(client.get("/v1/pools"))


def _find(rows: Sequence[Json], pool: str) -> Json:
    for row in rows:
        if row["pool"] == pool:
            return row
    raise NotFound(f"no such pool: {pool}; `berth pools add {pool}` creates it")


def _settings(row: Json) -> Json:
    settings = cast("Json", row["settings"])
    return {name: value for name, value in settings.items() if name not in ("pool", "partition")}
