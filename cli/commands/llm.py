"""`berth llm`: use of LLM endpoints, reasons of waits and rejections, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import typer

from cli.api.answers import api, items, pages
from cli.api.http import Api, Json, part
from cli.commands.llm_requests import requests
from cli.errors import NotFound
from cli.input.arguments import AsJson, Data, Limit
from cli.text.engines import away_text
from cli.text.llm_reasons import reason_words, request_lines
from cli.text.output import emit, lines, table
from cli.text.times import age_ms, clock, now_ms, parse_span_s, span

llm = typer.Typer(
    no_args_is_help=True, help="LLM requests: requests, top, why, limits, keys, usage, fairness."
)
llm.command()(requests)

By = Literal["tenant", "user", "application", "model", "endpoint", "day", "hour"]
OPEN = 1000
"""Most requests of each state that `top` counts."""


@llm.command()
def top(as_json: AsJson = False, data: Data = None) -> None:
    """Show who uses which endpoint now: running and waiting requests, and the hour so far."""
    client = api(data)
    rows = [
        row
        for state in ("running", "queued")
        for row in pages(client, "/v1/llm/requests", {"state": state}, OPEN)
    ]
    hour = items(client.get("/v1/llm/usage", {"by": "tenant", "since": now_ms() - 3_600_000}))
    if as_json:
        emit({"open": open_by_sender(rows), "hour": hour})
        return
    heads = ("TENANT", "ENDPOINT", "APPLICATION", "RUNNING", "WAITING", "LONGEST WAIT")
    cells = (_open_cells(row) for row in open_by_sender(rows))
    table(heads, cells, "no request runs or waits")
    lines(["", "since the hour began:"])
    _show_use(hour, ("tenant",))


def open_by_sender(rows: Sequence[Json]) -> list[Json]:
    """Return running and waiting requests by tenant, endpoint and application, most first."""
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    oldest: dict[tuple[str, str, str], int] = {}
    for row in rows:
        sender = str(row["tenant"]), str(row["endpoint"]), str(row["application"])
        counts.setdefault(sender, Counter())[str(row["state"])] += 1
        if row["state"] == "queued":
            queued_at = int(str(row["queued_at"]))
            oldest[sender] = min(queued_at, oldest.get(sender, queued_at))
    names = ("tenant", "endpoint", "application")
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1].total(), entry[0]))
    return [
        {
            **dict(zip(names, sender, strict=True)),
            "running": count["running"],
            "waiting": count["queued"],
            "oldest_queued_at": oldest.get(sender),
        }
        for sender, count in ordered
    ]


def _open_cells(row: Json) -> tuple[object, ...]:
    oldest = row["oldest_queued_at"]
    longest = span(age_ms(oldest)) if isinstance(oldest, int) else None
    names = ("tenant", "endpoint", "application", "running", "waiting")
    return (*(row[name] for name in names), longest)


@llm.command()
def why(
    request: Annotated[
        str, typer.Argument(help="Id of the request, as in its header x-request-id.")
    ],
    tenant: Annotated[
        str | None, typer.Option(help="Its tenant, where several used the same id.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Explain a request: its wait, why it was rejected or how it ended, and its charge."""
    try:
        client = api(data)
        row = client.get(f"/v1/llm/requests/{part(request)}", {"tenant": tenant})
    except NotFound:
        rule = "`berth llm requests` lists them; they are kept for 30 days"
        raise NotFound(f"no such request: {request}; {rule}") from None
    if as_json:
        emit(row)
        return
    lines(request_lines(row))
    if row["state"] == "queued" and (away := _away(client, str(row["endpoint"]))):
        lines([away])


def _away(client: Api, endpoint: str) -> str:
    """Return why the engines of an endpoint cannot serve; empty if one can."""
    try:
        return away_text(client.get(f"/v1/endpoints/{part(endpoint)}"))
    except NotFound:
        return ""


@llm.command()
def usage(
    by: Annotated[By, typer.Option(help="What is summed together.")] = "tenant",
    since: Annotated[
        str, typer.Option(help="Only the last hours or days, such as 24h or 30d (at most 90d).")
    ] = "30d",
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Show why requests were rejected instead.")
    ] = False,
    limit: Limit = 100,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Show requests, tokens, waits and cost, by tenant, user, application, model or time."""
    query = {"since": max(0, now_ms() - 1000 * parse_span_s(since)), "limit": min(limit, 1000)}
    client = api(data)
    if rejected:
        _show_rejected(items(client.get("/v1/llm/rejections", query)), as_json)
        return
    rows = items(client.get("/v1/llm/usage", {"by": by, **query}))
    if as_json:
        emit(rows)
        return
    by_of = {"user": ("tenant", "user"), "application": ("tenant", "application")}
    _show_use(rows, by_of.get(by, (f"{by}_at" if by in ("day", "hour") else by,)))


def _show_rejected(rows: Sequence[Json], as_json: bool) -> None:
    if as_json:
        emit(rows)
        return
    names = ("tenant", "endpoint", "rejected", "reason")
    cells = ((*(row[n] for n in names), reason_words(str(row["reason"]))) for row in rows)
    heads = (*(name.upper() for name in names), "WHAT IT MEANS")
    table(heads, cells, "no request was rejected")


def _show_use(rows: Sequence[Json], names: tuple[str, ...]) -> None:
    sums = ("requests", "rejected", "prompt_tokens", "output_tokens")
    heads = (
        *(name.upper().removesuffix("_AT") for name in names),
        "REQUESTS",
        "REJECTED",
        "PROMPT TOKENS",
        "OUTPUT TOKENS",
        "CACHED",
        "WASTED",
        "MEAN WAIT",
        "LONGEST WAIT",
        "COST",
    )
    cells = (tuple(_use_cells(row, names, sums)) for row in rows)
    table(heads, cells, "nothing was used")


def _use_cells(row: Json, names: tuple[str, ...], sums: tuple[str, ...]) -> Iterator[object]:
    yield from (clock(row[name]) if name.endswith("_at") else row[name] for name in names)
    yield from (row[name] for name in (*sums, "cached_tokens", "wasted_tokens"))
    requests = int(str(row["requests"]))
    yield span(int(str(row["waited_ms"])) / requests) if requests else None
    yield span(row["longest_wait_ms"]) if requests else None
    yield float(str(row["cost"]))


@llm.command()
def fairness(
    endpoint: Annotated[str | None, typer.Argument(help="Only this endpoint.")] = None,
    since: Annotated[
        str, typer.Option(help="Only the last minutes, hours or days (at most 90d).")
    ] = "24h",
    limit: Limit = 60,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Show how evenly tenants that waited were served, minute by minute, hours after 7 days."""
    query = {"since": max(0, now_ms() - 1000 * parse_span_s(since)), "limit": min(limit, 1000)}
    rows = items(api(data).get("/v1/llm/fairness", {"endpoint": endpoint, **query}))
    if as_json:
        emit(rows)
        return
    heads = ("ENDPOINT", "BEGAN", "OF", "MINUTES", "TENANTS", "LARGEST GAP", "MEAN GAP")
    names = ("minutes", "tenants", "largest_gap", "mean_gap")
    cells = (
        (row["endpoint"], clock(row["began_at"]), span(row["span_ms"]), *(row[n] for n in names))
        for row in rows
    )
    table(heads, cells, "no two tenants waited through a minute")


@llm.command()
def limits(as_json: AsJson = False, data: Data = None) -> None:
    """Show the budgets of endpoints and what is left of them beside what open requests hold."""
    rows = items(api(data).get("/v1/llm/limits"))
    if as_json:
        emit(rows)
        return
    heads = ("ENDPOINT", "TENANT", "HOLDER", "LIMIT", "UNIT", "FORGOTTEN", "SINCE", "USED", "LEFT")
    hint = "no budgets; `berth endpoints set ENDPOINT budgets=[...]` sets them"
    table(heads, map(_limit_cells, rows), hint)


def _limit_cells(row: Json) -> tuple[object, ...]:
    named = row["holder"] or "(none named)"
    holder = f"each {row['kind']}" if row["holder"] is None else f"{row['kind']} {named}"
    period = span(1000 * float(str(row["period_s"])))
    memory = {"window": f"after {period}", "half_life": f"half in {period}", "forever": "never"}
    forgotten = memory[str(row["memory"])]
    names = ("limit", "unit")
    counts = (clock(row["since"]), row["used"], row["left"])
    return (row["endpoint"], row["tenant"], holder, *(row[n] for n in names), forgotten, *counts)


@llm.command()
def keys(
    tenant: Annotated[str, typer.Argument(help="Tenant.", metavar="TENANT")],
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List the keys of a tenant with the models that each may call."""
    rows = _keys(api(data), tenant)
    if as_json:
        emit(rows)
        return
    cells = ((row["key_id"], row["role"], row["models"] or "all of the tenant") for row in rows)
    hint = f"no keys; `berth keys create --tenant {tenant}` makes one"
    table(("KEY", "ROLE", "MODELS"), cells, hint)


def _keys(client: Api, tenant: str) -> list[Json]:
    try:
        return items(client.get(f"/v1/tenants/{part(tenant)}/keys"))
    except NotFound:
        raise NotFound(f"no such tenant: {tenant}; `berth tenants list` shows all") from None
