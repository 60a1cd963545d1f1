"""Traces of LLM requests: parquet files, and a generator in ServeGen's shape."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.llm.requests import TraceRequest
from simulator.workload.errors import TraceError, first_line
from simulator.workload.locate import locate

COLUMNS = ("request_id", "tenant", "arrival_s", "input_tokens", "output_tokens")
SYNTHETIC = "synthetic"


def read_llm_trace(name: str, seed: int = 0) -> list[TraceRequest]:
    """Return the requests of a file, of a shared trace, or of `synthetic`, by arrival.

    The file is parquet with `COLUMNS`: those of the shared traces (Azure, Arena). Raises
    TraceError with file, column and row.
    """
    return servegen_requests(seed) if name == SYNTHETIC else read_parquet(locate(name))


def read_parquet(path: Path) -> list[TraceRequest]:
    """Read a file; a missing column or value is an error, never guessed."""
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(path, f"is not a readable parquet file ({first_line(error)})") from error
    for column in COLUMNS:
        if column not in table.schema.names:
            raise TraceError(path, "is required but missing", column=column)
    rows = table.select(list(COLUMNS)).to_pylist()
    if not rows:
        raise TraceError(path, "has no requests")
    requests = [_request(path, number, row) for number, row in enumerate(rows)]
    return sorted(requests, key=lambda request: request.arrival_s)


def _request(path: Path, number: int, row: dict[str, object]) -> TraceRequest:
    arrival_s = row["arrival_s"]
    if not isinstance(arrival_s, int | float) or not 0 <= arrival_s < math.inf:
        raise TraceError(path, f"{arrival_s!r} is no time", column="arrival_s", row=number)
    for column in ("input_tokens", "output_tokens"):
        tokens = row[column]
        if not isinstance(tokens, int) or tokens < 1:
            raise TraceError(path, f"{tokens!r} is below 1 token", column=column, row=number)
    return TraceRequest(
        f"{number}-{row['request_id']}",
        str(row["tenant"]),
        float(arrival_s),
        int(str(row["input_tokens"])),
        int(str(row["output_tokens"])),
    )


def servegen_requests(
    seed: int = 0, tenants: int = 40, span_s: float = 600.0, per_s: float = 2.5
) -> list[TraceRequest]:
    """Draw requests in the shape that ServeGen reports of production (arXiv 2505.09999).

    A few tenants send most requests (rates fall as 1 / rank), each in bursts (gamma arrivals with
    a coefficient of variation of its own, 0.8 to 2.5), with lognormal prompts about a length of
    its own and exponential answers. The figures are round, and fitted to no trace.
    """
    draw = random.Random(seed)
    total = sum(1 / rank for rank in range(1, tenants + 1))
    requests: list[TraceRequest] = []
    for rank in range(1, tenants + 1):
        rate = per_s / rank / total
        shape = draw.uniform(0.8, 2.5) ** -2
        prompt, answer = draw.lognormvariate(5.5, 0.8), draw.uniform(40, 300)
        at_s = draw.expovariate(rate)
        while at_s < span_s:
            prompt_tokens = min(max(round(prompt * draw.lognormvariate(0, 0.6)), 1), 4000)
            output_tokens = min(max(round(draw.expovariate(1 / answer)), 1), 2000)
            name = f"t{rank:02d}"
            requests.append(
                TraceRequest(f"{name}-{len(requests)}", name, at_s, prompt_tokens, output_tokens)
            )
            at_s += draw.gammavariate(shape, 1 / (rate * shape))
    return sorted(requests, key=lambda request: request.arrival_s)
