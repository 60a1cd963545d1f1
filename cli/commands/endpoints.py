"""`berth endpoints`: LLM endpoints, the engines behind them, and their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

import typer

from cli.api.answers import api, await_answer, items, report
from cli.api.http import Api, Json, part
from cli.commands.endpoints_plan import add_plan
from cli.errors import BadInput, NotFound, Refused
from cli.input.arguments import AsJson, Data
from cli.input.assignments import merge_settings, parse_assignments
from cli.input.upstreams import FORM, changed_upstreams
from cli.text.engines import ENGINE_HEADS, engine_cells, serving_text
from cli.text.output import emit, table, text_of

endpoints = typer.Typer(
    no_args_is_help=True, help="LLM endpoints: list, show, create, set, drain, delete, plan."
)
add_plan(endpoints)

EndpointArgument = Annotated[
    str, typer.Argument(help="Name of the model, as clients send it.", metavar="ENDPOINT")
]
Assignments = Annotated[
    list[str] | None,
    typer.Argument(help="Settings; `null` is the default of a setting.", metavar="NAME=VALUE..."),
]
Upstreams = Annotated[
    list[str] | None,
    typer.Option("--upstream", help=f"Engine: {FORM}; may be repeated.", metavar="UPSTREAM"),
]
HIDDEN = frozenset({"endpoint", "upstreams"})


@endpoints.command("list")
def list_(as_json: AsJson = False, data: Data = None) -> None:
    """List LLM endpoints."""
    rows = items(api(data).get("/v1/endpoints"))
    if as_json:
        emit(rows)
        return
    columns = ("ENDPOINT", "OTHER NAMES", "DISCIPLINE", "UPSTREAMS", "SERVING", "DRAINED", "OPEN")
    table(columns, map(_line, rows), "no endpoints; `berth endpoints create` makes one")


def _line(row: Json) -> tuple[object, ...]:
    settings = settings_of(row)
    names = [*cast("list[str]", settings["aliases"]), *cast("list[str]", settings["adapters"])]
    engines = [upstream["name"] for upstream in upstreams_of(row)]
    return (
        row["endpoint"],
        names,
        settings["discipline"],
        engines,
        serving_text(row),
        settings["drained"],
        row["open"],
    )


@endpoints.command()
def show(endpoint: EndpointArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show an endpoint with all of its settings, its upstreams, and how each of them does."""
    row = find(api(data), endpoint)
    if as_json:
        emit(row)
        return
    shown = {name: value for name, value in settings_of(row).items() if name != "upstreams"}
    table(("SETTING", "VALUE"), ((name, _text(value)) for name, value in sorted(shown.items())))
    fields = ("name", "url", "model", "key", "weight", "max_requests", "drained")
    cells = (tuple(upstream.get(name) for name in fields) for upstream in upstreams_of(row))
    heads = tuple(name.upper().replace("_", " ") for name in ("upstream", *fields[1:]))
    table(heads, cells, "no upstreams: nothing can be served")
    table(ENGINE_HEADS, engine_cells(row), "no engine was noted yet")


def _text(value: object) -> object:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "; ".join(" ".join(f"{n}={text_of(v)}" for n, v in item.items()) for item in value)
    return value


@endpoints.command()
def create(
    endpoint: EndpointArgument,
    settings: Assignments = None,
    upstream: Upstreams = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Create an endpoint; settings that are not named get their defaults."""
    changes = _parse(settings)
    changes["upstreams"] = changed_upstreams([], upstream or [])
    client = api(data)
    if any(row["endpoint"] == endpoint for row in items(client.get("/v1/endpoints"))):
        raise Refused(f"the endpoint exists: {endpoint}; `berth endpoints set` changes it")
    answer = send(client, endpoint, {}, changes, "absent")
    hint = (
        () if upstream else ("it has no upstream yet: `berth endpoints set --upstream` adds one",)
    )
    report(as_json, answer, f"{endpoint}: created", *hint)


@endpoints.command("set")
def set_(
    endpoint: EndpointArgument,
    settings: Assignments = None,
    upstream: Upstreams = None,
    remove_upstream: Annotated[
        list[str] | None,
        typer.Option(help="Name of an upstream to remove; may be repeated.", metavar="NAME"),
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Change settings of an endpoint; the others stay as they are.

    An upstream with the name of one that exists replaces it. A change of upstreams is refused if
    another command changed the endpoint since it was read: repeat it.
    """
    changes = _parse(settings)
    if not (changes or upstream or remove_upstream):
        raise BadInput("no setting; NAME=VALUE, --upstream or --remove-upstream is allowed")
    client = api(data)
    row = find(client, endpoint)
    if upstream or remove_upstream:
        changes["upstreams"] = changed_upstreams(
            upstreams_of(row), upstream or [], remove_upstream or []
        )
    report(as_json, *_change(client, row, changes))


@endpoints.command()
def drain(
    endpoint: EndpointArgument,
    upstream: Annotated[
        str | None, typer.Option(help="Drain this upstream alone.", metavar="NAME")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take new requests again.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Send no new requests to an endpoint or one of its upstreams; those that run go on."""
    client = api(data)
    row = find(client, endpoint)
    if upstream is None:
        changes: Json = {"drained": not undo}
    else:
        engines = upstreams_of(row)
        if all(engine["name"] != upstream for engine in engines):
            known = ", ".join(str(engine["name"]) for engine in engines) or "none"
            raise NotFound(f"no such upstream: {upstream}; {endpoint} has: {known}")
        changes = {
            "upstreams": [
                {**engine, "drained": not undo} if engine["name"] == upstream else engine
                for engine in engines
            ]
        }
    answer, *_ = _change(client, row, changes)
    drained = f"{endpoint}, upstream {upstream}" if upstream else endpoint
    state = "takes requests again" if undo else "drained"
    report(as_json, answer, f"{drained}: {state}")


@endpoints.command()
def delete(endpoint: EndpointArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Delete an endpoint: requests that wait are refused, those that run go on to their end."""
    client = api(data)
    find(client, endpoint)
    answer = await_answer(client, client.delete(f"/v1/endpoints/{part(endpoint)}"))
    report(as_json, answer, f"{endpoint}: deleted")


def _parse(words: Sequence[str] | None) -> Json:
    from shared.contracts.endpoints import EndpointSettings

    return parse_assignments(words or [], EndpointSettings, HIDDEN)


def _change(client: Api, row: Json, changes: Json) -> tuple[Json, *tuple[str, ...]]:
    """Send the changes; return the answer, and a text for each setting that was named."""
    from shared.contracts.endpoints import ConfigureEndpoint

    endpoint, before = str(row["endpoint"]), settings_of(row)
    merge_settings(ConfigureEndpoint, {"endpoint": endpoint}, changes)
    # The list of upstreams is one setting, made from the one that was read.
    based = {"if_version": row["version"]} if "upstreams" in changes else {}
    receipt = client.patch(f"/v1/endpoints/{part(endpoint)}", {**changes, **based})
    answer = await_answer(client, receipt)
    after = settings_of(find(client, endpoint))
    texts = (f"{n}: {_short(before, n)} -> {_short(after, n)}" for n in sorted(changes))
    return (answer, *texts)


def _short(settings: Mapping[str, object], name: str) -> str:
    value = settings.get(name)
    if name == "upstreams":
        return text_of([upstream["name"] for upstream in cast("list[Json]", value)])
    return text_of(_text(value))


def send(
    client: Api, endpoint: str, before: Mapping[str, object], changes: Json, version: str
) -> Json:
    """Send settings that are based on a version, and wait for the answer."""
    from shared.contracts.endpoints import ConfigureEndpoint

    body = merge_settings(ConfigureEndpoint, {"endpoint": endpoint, **before}, changes)
    receipt = client.post("/v1/endpoints", {**body, "if_version": version})
    return await_answer(client, receipt)


def find(client: Api, endpoint: str) -> Json:
    try:
        return client.get(f"/v1/endpoints/{part(endpoint)}")
    except NotFound:
        raise NotFound(f"no such endpoint: {endpoint}; {_next_step(client, endpoint)}") from None


def _next_step(client: Api, name: str) -> str:
    """Return what to do about a name that no endpoint has: it may be an alias or an adapter."""
    for row in items(client.get("/v1/endpoints")):
        settings = settings_of(row)
        names = (cast("list[str]", settings[of]) for of in ("aliases", "adapters"))
        if any(name in known for known in names):
            return f"it is another name of {row['endpoint']}"
    return f"`berth endpoints list` shows all, `berth endpoints create {name}` creates it"


def settings_of(row: Json) -> Json:
    return cast("Json", row["settings"])


def upstreams_of(row: Json) -> list[Json]:
    return cast("list[Json]", settings_of(row)["upstreams"])
