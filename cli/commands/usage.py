"""`berth usage`: GPU time, waits, outcomes and cost of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Literal, cast

import typer

from cli.api.answers import api, items, pages
from cli.api.http import Api, Json
from cli.errors import BadInput
from cli.input.arguments import AsJson, Data, Limit, OnlyPool
from cli.text.output import emit, table
from cli.text.times import DAY_MS, now_ms, parse_span_s, span

By = Literal["tenant", "user", "pool", "day", "month"]
COUNTS = ("starts", "succeeded", "failed", "cancelled", "preempted")
HOUR_MS = 3_600_000


def usage(
    by: Annotated[By, typer.Option(help="What is summed together.")] = "tenant",
    since: Annotated[
        str, typer.Option(help="First day in UTC, such as 2026-11-01, or a duration such as 30d.")
    ] = "30d",
    until: Annotated[
        str | None, typer.Option(help="First day in UTC that is not counted any more.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.")] = None,
    user: Annotated[str | None, typer.Option(help="Filter by user.")] = None,
    pool: OnlyPool = None,
    limit: Limit = 100,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Show what jobs used, by tenant, user, pool, day or month: GPU hours, waits, outcomes, cost.

    A start counts, with the wait before it, when the job is placed; GPU hours and cost count when
    the attempt has ended. Cost is by the pool setting gpu_hour_price.
    """
    query = {
        "by": by,
        "since": _day_ms("--since", since),
        "until": None if until is None else _day_ms("--until", until),
        "tenant": tenant,
        "user": user,
        "pool": pool,
    }
    client = api(data)
    rows = pages(client, "/v1/usage", query, limit)
    if as_json:
        emit(rows)
        return
    if by == "pool":
        marks = _pool_names(client)
        rows = [{**row, "pool": marks.get(str(row["pool"]), row["pool"])} for row in rows]
    names = {"user": ("tenant", "user"), "day": ("day_at",)}.get(by, (by,))
    heads = (
        *(name.upper().removesuffix("_AT") for name in names),
        "GPU HOURS",
        "MEAN WAIT",
        *(name.upper() for name in COUNTS),
        "COST",
    )
    table(heads, (tuple(_cells(row, names)) for row in rows), "nothing was used")


def _pool_names(client: Api) -> dict[str, str]:
    """Return the shown names of pools with virtual nodes: what those used are no hours of GPUs."""
    names = {}
    for row in items(client.get("/v1/pools")):
        backends = cast("list[str]", cast("Json", row["settings"])["backends"])
        if "virtual" in backends:
            kind = "virtual" if backends == ["virtual"] else "virtual in part"
            names[str(row["pool"])] = f"{row['pool']} ({kind})"
    return names


def _day_ms(option: str, text: str) -> int:
    """Return the begin of a day, or of the day that long ago, ms. Raises BadInput."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        pass
    else:
        return round(day.timestamp() * 1000)
    try:
        at = now_ms() - 1000 * parse_span_s(text)
    except BadInput:
        rule = "a day such as 2026-11-01 or a duration such as 30d is allowed"
        raise BadInput(f"{option}: {text!r}; {rule}") from None
    return max(0, at - at % DAY_MS)


def _cells(row: Json, names: tuple[str, ...]) -> Iterator[object]:
    for name in names:
        value = row[name]
        if isinstance(value, int):
            yield datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d")
        else:
            yield value or "-"
    starts = int(str(row["starts"]))
    yield f"{int(str(row['gpu_ms'])) / HOUR_MS:.2f}"
    yield span(int(str(row["waited_ms"])) / starts) if starts else None
    yield from (row[name] for name in COUNTS)
    yield f"{float(str(row['cost'])):.2f}"
