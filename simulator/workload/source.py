"""The one way to a workload: a trace by path or name, or the synthetic generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from simulator.workload.columns import Columns, columns_of
from simulator.workload.formats import READERS, found_in, split
from simulator.workload.jobs import columns_from, jobs_of
from simulator.workload.locate import locate
from simulator.workload.names import DEMO_TENANTS
from simulator.workload.rows import WorkloadJob
from simulator.workload.synthetic import generate
from simulator.workload.table import joined, started

SYNTHETIC = "synthetic"
SYNTHETIC_JOBS = 2000


class Trace(NamedTuple):
    """The jobs of a trace by time; how many never started, and so have no run; what was left out.

    `left_out` counts rows that are no job, or whose run is not known, by the reason.
    """

    jobs: list[WorkloadJob]
    never_started: int
    left_out: Mapping[str, int] = MappingProxyType({})


def load(
    trace: str = SYNTHETIC,
    jobs: int | None = None,
    *,
    seed: int = 0,
    tenants: Sequence[str] = DEMO_TENANTS,
) -> Trace:
    """`trace` is `synthetic`, a path, or a name under the shared traces; else `TraceError`.

    A path's format is found by its name and beginning, or named: `helios:cluster_log.csv`, see
    `formats.READERS`. All of it is checked, however few of its jobs are asked for: the first `jobs`
    by (submit, key), all of them for None. A job without a tenant gets one of `tenants`.
    """
    if trace == SYNTHETIC:
        return Trace(generate(SYNTHETIC_JOBS if jobs is None else jobs, seed, tenants), 0)
    columns, left_out = _read(trace)
    return Trace(jobs_of(columns, jobs, tenants), columns.never_started, left_out)


def read_columns(trace: str, *, seed: int = 0, tenants: Sequence[str] = DEMO_TENANTS) -> Columns:
    """The same jobs as `load`, as arrays; what the trace does not say has the code -1.

    `tenants` are those of the synthetic workload; a trace without tenants gets none here.
    """
    if trace == SYNTHETIC:
        return columns_from(load(trace, seed=seed, tenants=tenants).jobs)
    return _read(trace)[0]


def _read(trace: str) -> tuple[Columns, Mapping[str, int]]:
    form, name = split(trace)
    path = locate(name)
    parts = READERS[form or found_in(path)](path)
    table = joined(parts)
    ran = started(path, table)
    left_out = sum((Counter(part.left_out) for part in parts), Counter[str]())
    return columns_of(ran, table.num_rows - ran.num_rows), dict(left_out)
