"""`berth pools`: pools and their settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cli.api.answers import api, await_answer, items, report
from cli.api.http import Api, Json
from cli.errors import BadInput, NotFound, Refused
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, table, text_of

if TYPE_CHECKING:
    from pydantic import ValidationError

pools = typer.Typer(no_args_is_help=True, help="Pools: list, show, add, set.")

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
    body = {**changed_settings(pool, {}, changes), "if_version": "absent"}
    answer = await_answer(client, client.post("/v1/pools", body))
    report(as_json, answer, f"{pool}: created")


@pools.command("set")
def set_(
    pool: PoolArgument, settings: Assignments = None, as_json: AsJson = False, data: Data = None
) -> None:
    """Change settings of a pool; the others stay as they are.

    Refused if another command changed the pool between the reading and the change: repeat it.
    """
    changes = parse_assignments(settings or [])
    if not changes:
        raise BadInput("no setting; one NAME=VALUE or more are allowed")
    client = api(data)
    row = _find(_pools(client), pool)
    before = _settings(row)
    body = {**changed_settings(pool, before, changes), "if_version": row["version"]}
    answer = await_answer(client, client.post("/v1/pools", body))
    after = _settings(_find(_pools(client), pool))
    texts = (f"{n}: {text_of(before.get(n))} -> {text_of(after.get(n))}" for n in sorted(changes))
    report(as_json, answer, *texts)


def parse_assignments(words: Sequence[str]) -> Json:
    """Return the settings by name: JSON values, words, or words with commas. Raises BadInput."""
    from shared.contracts.pools import PoolSettings

    known = sorted(PoolSettings.model_fields.keys() - {"pool"})
    changes: Json = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign:
            raise BadInput(f"no value: {word}; NAME=VALUE is allowed")
        if name not in known:
            raise BadInput(f"unknown setting: {name}; one of {', '.join(known)} is allowed")
        if name in changes:
            raise BadInput(f"given twice: {name}; one value is allowed")
        is_list = isinstance(PoolSettings.model_fields[name].default, tuple)
        changes[name] = _value(text, is_list)
    return changes


def _value(text: str, is_list: bool) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if is_list and isinstance(value, str):
        return [part for part in value.split(",") if part]
    return value


def changed_settings(pool: str, before: Mapping[str, object], changes: Json) -> Json:
    """Return the body that sets the changes and keeps what was set before. Raises BadInput.

    A value of None is left out: the setting gets its default.
    """
    from pydantic import ValidationError

    from shared.contracts.pools import ConfigurePool

    merged = {"pool": pool, **before, **changes}
    body = {
        name: value
        for name, value in merged.items()
        if name in ConfigurePool.model_fields and value is not None
    }
    try:
        ConfigurePool.model_validate(body)
    except ValidationError as error:
        raise BadInput("; ".join(_faults(error))) from None
    return body


def _faults(error: ValidationError) -> list[str]:
    """Return a text per setting: its name, its value, and each rule that would do."""
    rules: dict[str, list[str]] = {}
    for fault in error.errors(include_url=False, include_context=False):
        rule = fault["msg"].removeprefix("Input should be ").partition(", unable")[0]
        rules.setdefault(f"{fault['loc'][0]}: {fault['input']!r}", []).append(rule)
    return [f"{value}; {' or '.join(rule)} is allowed" for value, rule in rules.items()]


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
