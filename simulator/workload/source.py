"""Loading of a workload: a trace by path or name, or the synthetic generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from simulator.workload.campaigns import generate_campaigns
from simulator.workload.columns import Columns, columns_of, head
from simulator.workload.errors import TraceError
from simulator.workload.formats import READERS, detect_format, split
from simulator.workload.jobs import columns_from, jobs_of
from simulator.workload.locate import locate
from simulator.workload.names import DEMO_TENANTS
from simulator.workload.profiles import PROFILES
from simulator.workload.rows import WorkloadJob
from simulator.workload.synthetic import generate
from simulator.workload.table import join_parts, started_jobs

SYNTHETIC = "synthetic"
SYNTHETIC_JOBS = 2000


class Trace(NamedTuple):
    """Jobs of a trace by time, how many never started, and the rows left out.

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
    """Load `synthetic`, a path, or a name under the shared traces. Raises TraceError.

    `synthetic:philly` and the like follow a profile of a real cluster, see `profiles.PROFILES`.
    A path's format is detected from its name and beginning, or named: `helios:cluster_log.csv`,
    see `formats.READERS`. The whole trace is checked, also if only the first `jobs` by (submit,
    key) are requested (None: all). A job without a tenant gets one of `tenants`.
    """
    if is_synthetic(trace):
        return Trace(_synthetic(trace, SYNTHETIC_JOBS if jobs is None else jobs, seed, tenants), 0)
    columns, left_out = _read(trace)
    return Trace(jobs_of(columns, jobs, tenants), columns.never_started, left_out)


def read_columns(
    trace: str, jobs: int | None = None, *, seed: int = 0, tenants: Sequence[str] = DEMO_TENANTS
) -> Columns:
    """Return the same jobs as `load`, as arrays; a value that the trace lacks has the code -1.

    `tenants` are those of a synthetic workload; a trace without tenants gets none here.
    """
    if is_synthetic(trace):
        return columns_from(load(trace, jobs, seed=seed, tenants=tenants).jobs)
    return head(_read(trace)[0], jobs)


def is_synthetic(trace: str) -> bool:
    """Return whether the workload is generated: `synthetic`, or `synthetic:` and a profile."""
    return trace.partition(":")[0] == SYNTHETIC


def _synthetic(trace: str, jobs: int, seed: int, tenants: Sequence[str]) -> list[WorkloadJob]:
    name = trace.partition(":")[2]
    if not name:
        return generate(jobs, seed, tenants)
    if name not in PROFILES:
        rule = f"no such profile of the synthetic workload; there are {', '.join(PROFILES)}"
        raise TraceError(Path(trace), rule)
    return generate_campaigns(PROFILES[name], jobs, seed, tenants)


def _read(trace: str) -> tuple[Columns, Mapping[str, int]]:
    form, name = split(trace)
    path = locate(name)
    parts = READERS[form or detect_format(path)](path)
    table = join_parts(parts)
    ran = started_jobs(path, table)
    left_out = sum((Counter(part.left_out) for part in parts), Counter[str]())
    return columns_of(ran, table.num_rows - ran.num_rows), dict(left_out)
