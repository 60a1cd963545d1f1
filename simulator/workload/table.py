"""The columns that every format is brought to, and the rules that a job has to keep.

A reader of a format fills a `Raw`; `checked` refuses what could not even be submitted, by file,
column and row. Jobs (`jobs_of`) and arrays (`columns`) are made from what it returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.workload.errors import TraceError, first_line
from simulator.workload.gangs import shape_gangs
from simulator.workload.names import slug
from simulator.workload.rows import EITHER

REQUIRED = ("job_id", "submit_s", "duration_s", "gpus")
NUMBERS = (
    *("submit_s", "duration_s", "gpus", "workers", "cpus", "mem_gib"),
    *("walltime_s", "queue_s", "checkpoint_interval_s"),
)
TEXTS = ("job_id", "tenant", "user", "gpu_type", "state", "job_name", "qos")
ROW = "row"

NEVER_STARTED = "pending_at_end"
"""State of a job that its trace never saw running: it alone may lack a duration."""

UNKNOWN_UNTIL_RUN = ("duration_s", "gpus")
"""Philly knows a job's GPUs by what it held."""

OUTCOMES = {"completed": True, "failed": False}
"""States that say how a job ended; all others leave it open."""

# The bounds of the job contract: a row beyond them could not even be submitted.
MIN_GPUS = 0.01
MAX_DURATION_S = 1e9
MAX_WORKERS = 4096
MAX_CPUS = 1024
MAX_MEM_GIB = 16384
MAX_KEY_LENGTH = 128


@dataclass(frozen=True, slots=True)
class Raw:
    """A trace in the columns of its format.

    `table` has REQUIRED and any of NUMBERS and TEXTS, totals of the whole job, times in seconds;
    `row` where rows of the file were left out. `names` says what a column is called in the file,
    where that differs. `left_out` counts rows that are no job, by the reason.
    """

    file: Path
    table: pa.Table
    names: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def refuse(self, column: str, rule: str, row: int | None = None) -> TraceError:
        """The error that names the column as the file does."""
        return TraceError(self.file, rule, column=self.names.get(column, column), row=row)


def checked(raw: Raw) -> pa.Table:
    """All of NUMBERS as float64, TEXTS as strings and `row`, in the order of the file.

    A value that the trace lacks is null. Raises TraceError for the first thing that is no job.
    """
    table = _typed(raw)
    _check_numbers(raw, table)
    _check_present(raw, table)
    _check_bounds(raw, table)
    _check_keys(raw, table)
    return table


def join_parts(parts: Sequence[Raw]) -> pa.Table:
    """All parts of a trace, each checked; a key is unique in all of them."""
    tables = [checked(raw) for raw in parts]
    whole = pa.concat_tables(tables)
    if len(parts) > 1 and len(pc.unique(whole["job_id"])) < whole.num_rows:
        _refuse_shared_key(parts, tables)
    return whole


def started_jobs(file: Path, table: pa.Table) -> pa.Table:
    """The jobs that ran, by submit and then by key."""
    kept = table.filter(pc.is_valid(table["duration_s"]))
    if kept.num_rows == 0:
        raise TraceError(file, "holds no job that ever started")
    return kept.sort_by([("submit_s", "ascending"), ("job_id", "ascending")])


def numbers(table: pa.Table, column: str) -> NDArray[np.float64]:
    """One column as float64; null becomes NaN."""
    return np.asarray(table[column].to_numpy(zero_copy_only=False), dtype=np.float64)


def gpu_type_of(text: str) -> str:
    """Legal names of the types that `text` allows, `|` between them; empty for none."""
    return EITHER.join(filter(None, map(slug, text.split(EITHER))))


def _typed(raw: Raw) -> pa.Table:
    columns = {name: _cast(raw, name, pa.float64()) for name in NUMBERS}
    columns |= {name: _cast(raw, name, pa.string()) for name in TEXTS}
    count = raw.table.num_rows
    columns[ROW] = (
        raw.table[ROW].cast(pa.int64())
        if ROW in raw.table.column_names
        else pa.array(np.arange(count))
    )
    return pa.table(columns)


def _cast(raw: Raw, column: str, target: pa.DataType) -> pa.ChunkedArray:
    if column not in raw.table.column_names:
        return pa.chunked_array([pa.nulls(raw.table.num_rows, target)])
    kind = "numbers" if target == pa.float64() else "text"
    column_type = raw.table[column].type
    if pa.types.is_boolean(column_type) or (
        kind == "numbers" and pa.types.is_temporal(column_type)
    ):
        raise raw.refuse(column, f"must hold {kind}, not {column_type}")
    try:
        return raw.table[column].cast(target)
    except pa.ArrowException as error:
        raise raw.refuse(column, f"must hold {kind} ({first_line(error)})") from error


def _check_numbers(raw: Raw, table: pa.Table) -> None:
    for column in NUMBERS:
        values = table[column]
        _refuse(raw, table, column, pc.invert(pc.is_finite(values)), "must be a finite number")
        _refuse(raw, table, column, pc.less(values, 0), "must not be negative")


def _check_present(raw: Raw, table: pa.Table) -> None:
    waiting = pc.fill_null(pc.equal(table["state"], NEVER_STARTED), False)
    for column in REQUIRED:
        empty = pc.is_null(table[column])
        if column in UNKNOWN_UNTIL_RUN:
            empty = pc.and_(empty, pc.invert(waiting))
        _refuse(raw, table, column, empty, "must not be empty")


def _check_bounds(raw: Raw, table: pa.Table) -> None:
    for column in ("duration_s", "walltime_s"):
        too_long = pc.greater(table[column], MAX_DURATION_S)
        _refuse(raw, table, column, too_long, f"must not exceed {MAX_DURATION_S:g}")
    sliver = pc.and_(pc.greater(table["gpus"], 0), pc.less(table["gpus"], MIN_GPUS))
    _refuse(raw, table, "gpus", sliver, f"must be 0 or at least {MIN_GPUS}")
    _refuse(raw, table, "workers", pc.less(table["workers"], 1), "must be at least 1")
    _check_workers(raw, table)


def _check_workers(raw: Raw, table: pa.Table) -> None:
    workers = shape_gangs(numbers(table, "gpus"), numbers(table, "workers")).workers
    for column, values, limit in (
        ("gpus", workers, MAX_WORKERS),
        ("cpus", numbers(table, "cpus") / workers, MAX_CPUS),
        ("mem_gib", numbers(table, "mem_gib") / workers, MAX_MEM_GIB),
    ):
        over = np.flatnonzero(values > limit)
        if over.size:
            unit = "workers" if column == "gpus" else "per worker"
            rule = f"must not come to more than {limit} {unit}, comes to {values[over[0]]:g}"
            raise raw.refuse(column, rule, table[ROW][int(over[0])].as_py())


def _refuse(raw: Raw, table: pa.Table, column: str, bad: pa.ChunkedArray, rule: str) -> None:
    at = pc.index(pc.fill_null(bad, False), True).as_py()
    if at >= 0:
        value = table[column][at].as_py()
        shown = "" if value is None else f", is {value}"
        raise raw.refuse(column, f"{rule}{shown}", table[ROW][at].as_py())


def _refuse_shared_key(parts: Sequence[Raw], tables: Sequence[pa.Table]) -> None:
    seen: dict[str, Path] = {}
    for raw, table in zip(parts, tables, strict=True):
        for row, key in enumerate(table["job_id"].to_pylist()):
            if key in seen:
                rule = f"must be unique, {key!r} is also in {seen[key]}"
                raise raw.refuse("job_id", rule, table[ROW][row].as_py())
        seen |= dict.fromkeys(table["job_id"].to_pylist(), raw.file)


def _check_keys(raw: Raw, table: pa.Table) -> None:
    keys = table["job_id"]
    span = pc.min_max(pc.utf8_length(keys)).as_py()
    fits = table.num_rows == 0 or (span["min"] >= 1 and span["max"] <= MAX_KEY_LENGTH)
    if fits and len(pc.unique(keys)) == table.num_rows:
        return
    seen: dict[str, int] = {}
    for key, row in zip(keys.to_pylist(), table[ROW].to_pylist(), strict=True):
        if not 1 <= len(key) <= MAX_KEY_LENGTH:
            rule = f"must have 1 to {MAX_KEY_LENGTH} characters, has {len(key)}"
            raise raw.refuse("job_id", rule, row)
        if seen.setdefault(key, row) != row:
            raise raw.refuse("job_id", f"must be unique, {key!r} is also in row {seen[key]}", row)
