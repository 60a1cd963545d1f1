"""Measures the distance of the twin from real runs, and of the estimate from the twin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from simulator.llm.adapters.engines import ENGINES, AdapterEngine
from simulator.llm.adapters.loads import AdapterLoad, draw_requests
from simulator.llm.adapters.throughput import capacity_of
from simulator.llm.adapters.twin import Twin

MEASURED = Path(__file__).with_name("measured.json")
RUN_S = 3600.0
MOST_OFFERED = 15_000
"""Tokens per s above which a real run was so overloaded that its clients were the limit."""
SERVED = 0.95
LEAST_SERVED, MOST_WAIT_S, SPAN_S = 0.99, 30.0, 900.0

Row = dict[str, Any]


def smape(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the symmetric mean absolute percentage error, as a part of 1."""
    return fmean(2 * abs(a - b) / (a + b) for a, b in pairs) if pairs else 0.0


def measured_rows() -> list[Row]:
    document = json.loads(MEASURED.read_text(encoding="utf-8"))
    return [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]


def memory_agreement(rows: Sequence[Row]) -> tuple[int, int]:
    """Return how many real runs started as the rule of memory says, and how many there are."""
    agreed = [
        ENGINES[row["engine"]].starts(row["slots"], row["max_rank"]) == bool(row["started"])
        for row in rows
    ]
    return sum(agreed), len(agreed)


def twin_errors(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the error of the twin's tokens per s: served runs, and overloaded ones."""
    served: list[tuple[float, float]] = []
    overloaded: list[tuple[float, float]] = []
    for row in rows:
        if row["tokens_per_s"] is None or _offered(row) > MOST_OFFERED:
            continue
        pair = (_twin_tokens_per_s(row), float(row["tokens_per_s"]))
        (served if pair[1] >= SERVED * _offered(row) else overloaded).append(pair)
    return {
        "served_runs": len(served),
        "served_smape": round(smape(served), 4),
        "overloaded_runs": len(overloaded),
        "overloaded_smape": round(smape(overloaded), 4),
    }


def _loads(row: Row) -> list[AdapterLoad]:
    """The ranks of the runs alternate between the smaller ones and the highest."""
    rates = [float(rate) for rate in row["rates"].split()]
    ranks = (row["max_rank"], 8)
    return [
        AdapterLoad(f"a{n}", ranks[n % 2], rates[n % 3], row["prompt_tokens"], row["output_tokens"])
        for n in range(row["adapters"])
    ]


def _offered(row: Row) -> float:
    tokens = row["prompt_tokens"] + row["output_tokens"]
    return sum(load.rate_per_s for load in _loads(row)) * float(tokens)


def _twin_tokens_per_s(row: Row) -> float:
    loads = _loads(row)
    twin = Twin(ENGINES[row["engine"]], row["slots"], loads)
    return twin.run(draw_requests(loads, RUN_S, 1), RUN_S).tokens_per_s


def twin_factor(engine: AdapterEngine, slots: int, loads: Sequence[AdapterLoad]) -> float:
    """Search the largest factor of the rates at which the twin does not starve, within 3 %."""
    low, high = 0.0, 1.0
    while high < 64 and not _starves(engine, slots, loads, high):
        low, high = high, 2 * high
    while high - low > 0.03 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _starves(engine, slots, loads, middle) else (middle, high)
    return low


def _starves(
    engine: AdapterEngine, slots: int, loads: Sequence[AdapterLoad], factor: float
) -> bool:
    scaled = [load.scaled(factor) for load in loads]
    report = Twin(engine, slots, scaled).run(draw_requests(scaled, SPAN_S, 2), SPAN_S)
    return report.starves(LEAST_SERVED, MOST_WAIT_S)


def capacity_ratio(engine: AdapterEngine, loads: Sequence[AdapterLoad]) -> float:
    """Return what the twin serves, of what the estimate says one engine serves."""
    capacity = capacity_of(engine, loads)
    at_capacity = [load.scaled(capacity.factor) for load in loads]
    return twin_factor(engine, capacity.slots, at_capacity)
