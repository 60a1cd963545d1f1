"""The one way to a workload: a trace by path or name, or the synthetic generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simulator.workload.columns import Columns, columns_of
from simulator.workload.jobs import columns_from, jobs_of
from simulator.workload.locate import locate
from simulator.workload.names import DEMO_TENANTS
from simulator.workload.parquet import read_raw
from simulator.workload.rows import WorkloadJob
from simulator.workload.synthetic import generate
from simulator.workload.table import checked, started

SYNTHETIC = "synthetic"
SYNTHETIC_JOBS = 2000


class Trace(NamedTuple):
    """The jobs of a trace by time, and how many of it were never started and so have no run."""

    jobs: list[WorkloadJob]
    never_started: int


def load(
    trace: str = SYNTHETIC,
    jobs: int | None = None,
    *,
    seed: int = 0,
    tenants: Sequence[str] = DEMO_TENANTS,
) -> Trace:
    """`trace` is `synthetic`, a path, or a name under the shared traces; else `TraceError`.

    The whole file is checked, however few of its jobs are asked for: the first `jobs` by
    (submit, key), all of them for None. A job without a tenant is spread over `tenants`.
    """
    if trace == SYNTHETIC:
        return Trace(generate(SYNTHETIC_JOBS if jobs is None else jobs, seed, tenants), 0)
    columns = read_columns(trace)
    return Trace(jobs_of(columns, jobs, tenants), columns.never_started)


def read_columns(trace: str, *, seed: int = 0, tenants: Sequence[str] = DEMO_TENANTS) -> Columns:
    """The same jobs as `load`, as arrays; what the trace does not say has the code -1."""
    if trace == SYNTHETIC:
        return columns_from(load(trace, seed=seed, tenants=tenants).jobs)
    raw = read_raw(locate(trace))
    table = checked(raw)
    ran = started(raw, table)
    return columns_of(ran, table.num_rows - ran.num_rows)
