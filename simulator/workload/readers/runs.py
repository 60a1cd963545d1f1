"""Runs of jobs as several formats record them: start, end, state, and the trace's zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.workload.delimited import Columns, Sheet, gather_blocks, map_texts, read_blocks
from simulator.workload.table import NEVER_STARTED, Raw

Floats = NDArray[np.float64]

LEFT_OUT = "left_out"
"""Column of reasons: a row that has one is no job, or its run is unknown."""

NO_END = "no recorded end of its run"

SLURM_STATES = {
    "completed": "completed",
    "failed": "failed",
    "timeout": "failed",
    "node_fail": "failed",
    "out_of_memory": "failed",
}
"""Outcomes as the papers of Helios and Acme count them; CANCELLED is neither."""


def read_slurm(
    file: Path,
    required: Sequence[str],
    optional: Sequence[str],
    names: Mapping[str, str],
    further: Callable[[Sheet], Columns],
) -> Raw:
    """Read the jobs of a Slurm log; `further` has the columns beside those that all logs have."""
    blocks = read_blocks(file, required, optional)
    table = gather_blocks(blocks, lambda sheet: {**slurm_columns(sheet), **further(sheet)})
    return drop_left_out(file, table, names, first_submit_s(table))


def drop_left_out(
    file: Path, table: pa.Table, names: Mapping[str, str], zero_s: float | None = None
) -> Raw:
    """Return `table` without the rows that have a reason in LEFT_OUT, which are counted.

    With `zero_s`, submits count from it.
    """
    counted: dict[str, int] = {}
    if LEFT_OUT in table.column_names:
        reasons = table[LEFT_OUT]
        counts = pc.value_counts(pc.drop_null(reasons)).to_pylist()
        counted = {entry["values"]: entry["counts"] for entry in counts}
        table = table.filter(pc.is_null(reasons)).drop_columns([LEFT_OUT])
    if zero_s is not None:
        place = table.column_names.index("submit_s")
        table = table.set_column(place, "submit_s", pc.subtract(table["submit_s"], zero_s))
    return Raw(file, table, names, dict(sorted(counted.items())))


def first_submit_s(table: pa.Table) -> float | None:
    """Return the zero of a trace of dates."""
    first_s: float | None = pc.min(table["submit_s"]).as_py()
    return first_s


def waits_s(submit_s: Floats, start_s: Floats) -> Floats:
    """Return the real waits; NaN where a start is missing, or before the submit (invalid)."""
    wait_s = start_s - submit_s
    return np.where(wait_s >= 0, wait_s, np.nan)


def slurm_columns(sheet: Sheet) -> Columns:
    """Return the columns that Helios and Acme share: user, times, GPUs, CPUs and state."""
    submit_s, start_s = sheet.time_s("submit_time"), sheet.time_s("start_time")
    state = map_texts(sheet.text("state"), SLURM_STATES, "cancelled")
    return {
        "job_id": sheet.text("job_id"),
        "user": sheet.text("user"),
        "submit_s": submit_s,
        "queue_s": waits_s(submit_s, start_s),
        "gpus": sheet.number("gpu_num"),
        "cpus": sheet.number("cpu_num"),
        **run_columns(start_s, sheet.time_s("end_time"), state),
    }


def run_columns(start_s: Floats, end_s: Floats, state: pa.Array) -> dict[str, Floats | pa.Array]:
    """Return duration, state and reason of jobs by the start and end of their run (NaN: not
    recorded).

    One without a start never ran; one with a start alone has a run of unknown length.
    """
    waiting = np.isnan(start_s)
    endless = ~waiting & np.isnan(end_s)
    return {
        "duration_s": end_s - start_s,
        "state": pc.if_else(pa.array(waiting), NEVER_STARTED, state),
        LEFT_OUT: pc.if_else(pa.array(endless), NO_END, pa.scalar(None, pa.string())),
    }
