"""Reader of job traces in the shared parquet columns; what does not fit is named, never guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simulator.workload.names import (
    DEMO_TENANTS,
    UNKNOWN_USER,
    name_of,
    slug,
    spread,
    text_of,
)
from simulator.workload.rows import UNKNOWN_CPUS, UNKNOWN_MEM_GIB, WorkloadJob, gang

REQUIRED = ("job_id", "submit_s", "duration_s", "gpus")
NUMBERS = ("submit_s", "duration_s", "gpus", "cpus", "mem_gib")
TEXTS = ("job_id", "tenant", "user", "gpu_type", "state", "job_name")

NEVER_STARTED = "pending_at_end"
"""State of a job that was still waiting when its trace ended: it alone may lack a duration."""

# The bounds of the job contract: a row beyond them could not even be submitted.
MIN_GPUS = 0.01
MAX_DURATION_S = 1e9
MAX_WORKERS = 4096
MAX_CPUS = 1024
MAX_MEM_GIB = 16384
MAX_KEY_LENGTH = 128

_OUTCOMES = {"completed": True, "failed": False}


class TraceError(Exception):
    """A trace cannot be read; `row` counts from 0, in the order of the file."""

    def __init__(
        self, file: Path, rule: str, *, column: str | None = None, row: int | None = None
    ) -> None:
        self.file, self.column, self.row, self.rule = file, column, row, rule
        where = [str(file)]
        where += [f"column {column}"] if column is not None else []
        where += [f"row {row}"] if row is not None else []
        super().__init__(f"{', '.join(where)}: {rule}")


class Trace(NamedTuple):
    """The jobs of a trace by time, and how many of it were never started and so have no run."""

    jobs: list[WorkloadJob]
    never_started: int


class _Row(NamedTuple):
    row: int
    job_id: str
    tenant: str | None
    user: str | None
    job_name: str | None
    submit_s: float
    duration_s: float
    gpus: float
    gpu_type: str | None
    cpus: float | None
    mem_gib: float | None
    state: str | None


def read(
    path: Path, jobs: int | None = None, tenants: Sequence[str] = DEMO_TENANTS
) -> list[WorkloadJob]:
    """The first `jobs` jobs by (submit_s, job_id); all of them for None."""
    return read_trace(path, jobs, tenants).jobs


def read_trace(path: Path, jobs: int | None = None, tenants: Sequence[str] = DEMO_TENANTS) -> Trace:
    """The whole file is checked, however few of its jobs are asked for."""
    table = _typed(path, _load(path))
    _check(path, table)
    started = table.filter(pc.is_valid(table["duration_s"]))
    if started.num_rows == 0:
        raise TraceError(path, "holds no job that ever started")
    ordered = started.sort_by([("submit_s", "ascending"), ("job_id", "ascending")])
    taken = ordered if jobs is None else ordered.slice(0, jobs)
    read_jobs = [_job(path, row, tenants) for row in _rows(taken)]
    return Trace(read_jobs, table.num_rows - started.num_rows)


def _load(path: Path) -> pa.Table:
    if not path.is_file():
        raise TraceError(path, "no such file")
    try:
        schema = pq.read_schema(path)
        _require(path, schema.names)
        wanted = [name for name in (*NUMBERS, *TEXTS) if name in schema.names]
        return pq.read_table(path, columns=list(dict.fromkeys(wanted)), partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(path, f"is not a readable parquet file ({_line(error)})") from error


def _require(path: Path, names: Sequence[str]) -> None:
    for column in REQUIRED:
        if column not in names:
            raise TraceError(path, "is required but missing", column=column)
    for column in (*NUMBERS, *TEXTS):
        if list(names).count(column) > 1:
            raise TraceError(path, "appears more than once", column=column)


def _typed(path: Path, table: pa.Table) -> pa.Table:
    columns = {name: _cast(path, table, name, pa.float64()) for name in NUMBERS}
    columns |= {name: _cast(path, table, name, pa.string()) for name in TEXTS}
    columns["row"] = pa.array(range(table.num_rows), pa.int64())
    return pa.table({name: columns[name] for name in _Row._fields})


def _cast(path: Path, table: pa.Table, column: str, wanted: pa.DataType) -> pa.ChunkedArray:
    if column not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, wanted)])
    kind = "numbers" if wanted == pa.float64() else "text"
    given = table[column].type
    if pa.types.is_boolean(given) or (kind == "numbers" and pa.types.is_temporal(given)):
        raise TraceError(path, f"must hold {kind}, not {given}", column=column)
    try:
        return table[column].cast(wanted)
    except pa.ArrowException as error:
        raise TraceError(path, f"must hold {kind} ({_line(error)})", column=column) from error


def _check(path: Path, table: pa.Table) -> None:
    for column in NUMBERS:
        values = table[column]
        _refuse(path, table, column, pc.invert(pc.is_finite(values)), "must be a finite number")
        _refuse(path, table, column, pc.less(values, 0), "must not be negative")
    waiting = pc.fill_null(pc.equal(table["state"], NEVER_STARTED), False)
    for column in REQUIRED:
        empty = pc.is_null(table[column])
        if column == "duration_s":
            empty = pc.and_(empty, pc.invert(waiting))
        _refuse(path, table, column, empty, "must not be empty")
    too_long = pc.greater(table["duration_s"], MAX_DURATION_S)
    _refuse(path, table, "duration_s", too_long, f"must not exceed {MAX_DURATION_S:g}")
    sliver = pc.and_(pc.greater(table["gpus"], 0), pc.less(table["gpus"], MIN_GPUS))
    _refuse(path, table, "gpus", sliver, f"must be 0 or at least {MIN_GPUS}")
    _check_keys(path, table["job_id"].to_pylist())


def _refuse(path: Path, table: pa.Table, column: str, bad: pa.ChunkedArray, rule: str) -> None:
    row = pc.index(pc.fill_null(bad, False), True).as_py()
    if row >= 0:
        value = table[column][row].as_py()
        shown = "" if value is None else f", is {value}"
        raise TraceError(path, f"{rule}{shown}", column=column, row=row)


def _check_keys(path: Path, keys: list[str]) -> None:
    seen: dict[str, int] = {}
    for row, key in enumerate(keys):
        if not 1 <= len(key) <= MAX_KEY_LENGTH:
            rule = f"must have 1 to {MAX_KEY_LENGTH} characters, has {len(key)}"
            raise TraceError(path, rule, column="job_id", row=row)
        if seen.setdefault(key, row) != row:
            rule = f"must be unique, {key!r} is also in row {seen[key]}"
            raise TraceError(path, rule, column="job_id", row=row)


def _rows(table: pa.Table) -> Iterator[_Row]:
    columns = (table[name].to_pylist() for name in _Row._fields)
    return map(_Row._make, zip(*columns, strict=True))


def _job(path: Path, row: _Row, tenants: Sequence[str]) -> WorkloadJob:
    """Totals of the job become shares of its workers."""
    workers, gpus_per_worker = gang(row.gpus)
    cpus = UNKNOWN_CPUS if row.cpus is None else row.cpus / workers
    mem_gib = UNKNOWN_MEM_GIB if row.mem_gib is None else row.mem_gib / workers
    for column, value, limit in (
        ("gpus", workers, MAX_WORKERS),
        ("cpus", cpus, MAX_CPUS),
        ("mem_gib", mem_gib, MAX_MEM_GIB),
    ):
        if value > limit:
            what = "workers" if column == "gpus" else "per worker"
            rule = f"must not come to more than {limit} {what}, comes to {value:g}"
            raise TraceError(path, rule, column=column, row=row.row)
    return WorkloadJob(
        job_key=row.job_id,
        tenant=name_of(row.tenant) if row.tenant else spread(row.job_id, tenants),
        user=name_of(row.user) if row.user else UNKNOWN_USER,
        name=text_of(row.job_name or row.job_id),
        submit_s=row.submit_s,
        duration_s=row.duration_s,
        workers=workers,
        gpus_per_worker=gpus_per_worker,
        gpu_type=slug(row.gpu_type or "") or None,
        cpus=cpus,
        mem_gib=mem_gib,
        succeeded=_OUTCOMES.get(row.state or ""),
    )


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
