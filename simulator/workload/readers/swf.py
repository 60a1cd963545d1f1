"""Standard Workload Format 2.2 of the Parallel Workloads Archive: 18 numbers a line, `;` comments.

-1 is "unknown". A processor is read as a GPU. The request is the requested number of processors
(field 8), else the allocated one (field 5), as simulators of the archive's logs do. Group is the
tenant, executable the name, queue the class. Lines of status 2, 3 and 4 are parts of a checkpointed
job that has a summary line of its own. A job that was cancelled before it ran, or without a run
time, never started.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.workload.delimited import Columns, to_table
from simulator.workload.errors import TraceError
from simulator.workload.files import open_trace, peek
from simulator.workload.readers.runs import LEFT_OUT, drop_left_out
from simulator.workload.table import NEVER_STARTED, ROW, Raw

FIELDS = (
    *("job number", "submit time", "wait time", "run time", "allocated processors"),
    *("average CPU time", "used memory", "requested processors", "requested time"),
    *("requested memory", "status", "user", "group", "executable", "queue", "partition"),
    *("preceding job", "think time"),
)
NAMES = {
    "job_id": "job number",
    "submit_s": "submit time",
    "duration_s": "run time",
    "gpus": "requested processors",
    "mem_gib": "requested memory",
    "walltime_s": "requested time",
    "queue_s": "wait time",
}
KIB_PER_GIB = 1 << 20
PART_OF_A_JOB = "part of a checkpointed job"
NO_PROCESSORS = "no number of processors"
BLOCK_LINES = 1 << 16

FAILED, COMPLETED, CANCELLED = 0, 1, 5
_STATES = {FAILED: "failed", COMPLETED: "completed", CANCELLED: "cancelled"}

Floats = NDArray[np.float64]


class _Block(NamedTuple):
    """Rows of 18 numbers each, and the number of the first."""

    first_row: int
    values: Floats


def read_raw(file: Path) -> Raw:
    """Read jobs in the order of the file; comments and blank lines are no rows."""
    if not peek(file).strip():
        raise TraceError(file, "is empty")
    with open_trace(file) as stream:
        tables = [to_table(_columns(block)) for block in _blocks(file, stream)]
    if not tables:
        raise TraceError(file, "holds no rows")
    return drop_left_out(file, pa.concat_tables(tables), NAMES)


def _blocks(file: Path, stream: IO[bytes]) -> Iterator[_Block]:
    numbers, row, first_row = array("d"), 0, 0
    for line in stream:
        fields = line.split()
        if not fields or fields[0].startswith(b";"):
            continue
        if len(fields) != len(FIELDS):
            rule = f"must have {len(FIELDS)} fields, has {len(fields)}"
            raise TraceError(file, rule, row=row)
        try:
            numbers.extend(map(float, fields))
        except ValueError as error:
            raise _no_number(file, fields, row) from error
        row += 1
        if row - first_row == BLOCK_LINES:
            yield _block(file, first_row, numbers)
            numbers, first_row = array("d"), row
    if numbers:
        yield _block(file, first_row, numbers)


def _block(file: Path, first_row: int, numbers: array[float]) -> _Block:
    values = np.array(numbers).reshape(-1, len(FIELDS))
    infinite = np.argwhere(~np.isfinite(values))
    if infinite.size:
        row, column = infinite[0]
        rule = f"must be a finite number, is {values[row, column]}"
        raise TraceError(file, rule, column=FIELDS[column], row=first_row + int(row))
    return _Block(first_row, values)


def _no_number(file: Path, fields: list[bytes], row: int) -> TraceError:
    for name, field in zip(FIELDS, fields, strict=True):
        try:
            float(field)
        except ValueError:
            shown = field.decode(errors="replace")
            return TraceError(file, f"must be a number, is {shown!r}", column=name, row=row)
    raise AssertionError("some field of the row was no number")


def _columns(block: _Block) -> Columns:
    field = dict(zip(FIELDS, block.values.T, strict=True))
    requested = _known(field["requested processors"])
    processors = np.where(requested > 0, requested, _known(field["allocated processors"]))
    run_s, status = _known(field["run time"]), field["status"]
    waiting = np.isnan(run_s) | ((status == CANCELLED) & (run_s == 0))
    return {
        "job_id": pa.array([str(int(number)) for number in field["job number"]]),
        "tenant": _labels("group", field["group"]),
        "user": _labels("user", field["user"]),
        "job_name": _labels("app", field["executable"]),
        "qos": _labels("queue", field["queue"]),
        "submit_s": field["submit time"],
        "duration_s": np.where(waiting, np.nan, run_s),
        "gpus": processors,
        "mem_gib": _known(field["requested memory"]) * processors / KIB_PER_GIB,
        "walltime_s": _known(field["requested time"]),
        "queue_s": _known(field["wait time"]),
        "state": pa.array(_states(status, waiting)),
        LEFT_OUT: pa.array(_reasons(status, processors), pa.string()),
        ROW: np.arange(block.first_row, block.first_row + len(status)),
    }


def _known(values: Floats) -> Floats:
    return np.where(values == -1, np.nan, values)


def _labels(prefix: str, numbers: Floats) -> pa.Array:
    known, index = np.unique(numbers, return_inverse=True)
    labels = [None if number == -1 else f"{prefix}{number:g}" for number in known]
    return pa.array(labels, pa.string()).take(pa.array(index))


def _states(status: Floats, waiting: NDArray[np.bool_]) -> list[str]:
    return [
        NEVER_STARTED if never else _STATES.get(int(code), "unknown")
        for code, never in zip(status.tolist(), waiting.tolist(), strict=True)
    ]


def _reasons(status: Floats, processors: Floats) -> list[str | None]:
    part = np.isin(status, (2, 3, 4))
    bare = ~(processors > 0)
    return [
        PART_OF_A_JOB if is_part else NO_PROCESSORS if is_bare else None
        for is_part, is_bare in zip(part.tolist(), bare.tolist(), strict=True)
    ]
