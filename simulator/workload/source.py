"""The one way to a workload: a trace by path or name, or the synthetic generator."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.workload.locate import locate
from simulator.workload.names import DEMO_TENANTS
from simulator.workload.parquet import Trace, read_trace
from simulator.workload.synthetic import generate

SYNTHETIC = "synthetic"
SYNTHETIC_JOBS = 2000


def load(
    trace: str = SYNTHETIC,
    jobs: int | None = None,
    *,
    seed: int = 0,
    tenants: Sequence[str] = DEMO_TENANTS,
) -> Trace:
    """`trace` is `synthetic`, a path, or a name under the shared traces; else `TraceError`."""
    if trace == SYNTHETIC:
        return Trace(generate(SYNTHETIC_JOBS if jobs is None else jobs, seed, tenants), 0)
    return read_trace(locate(trace), jobs, tenants)
