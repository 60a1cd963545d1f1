"""Alibaba's cluster-trace-gpu-v2020 (PAI, NSDI '22, CC BY 4.0): tables without a header.

A folder with `pai_task_table.csv` and `pai_job_table.csv`, plain or gzipped. One job of Berth is
one *task*: `inst_num` instances of `plan_gpu` percent of a GPU each, a gang of equal workers; a job
of several roles (ps, worker, evaluator) is as many gangs. Its submit is its job's start_time, which
is documented as the submission.

Where they lie in the folder too: `pai_group_tag_table.csv` gives the group, the tag of recurrent
tasks, as the name, and the GPU type requested (else the type given stands for it);
`pai_instance_table.csv` (2 GB, read in blocks) gives the span in which instances really ran, since
a task's own start is its launch, before its instances find GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.workload.delimited import (
    Columns,
    Floats,
    Sheet,
    gather_blocks,
    map_texts,
    read_blocks,
    to_table,
)
from simulator.workload.readers.runs import LEFT_OUT, drop_left_out, run_columns, waits_s
from simulator.workload.table import ROW, Raw

TASKS, JOBS = "pai_task_table", "pai_job_table"
TAGS, INSTANCES = "pai_group_tag_table", "pai_instance_table"
HEADERS = {
    TASKS: (
        *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
        *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
    ),
    JOBS: ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    TAGS: ("inst_id", "user", "gpu_type_spec", "group", "workload"),
    INSTANCES: (
        *("job_name", "task_name", "inst_name", "worker_name", "inst_id"),
        *("status", "start_time", "end_time", "machine"),
    ),
}
SUFFIXES = (".csv", ".csv.gz")
NAMES = {
    "job_id": "job_name",
    "gpus": "plan_gpu",
    "workers": "inst_num",
    "cpus": "plan_cpu",
    "mem_gib": "plan_mem",
    "duration_s": "end_time",
    "submit_s": "start_time",
}
STATES = {"terminated": "completed", "failed": "failed", "running": "running_at_end"}

NO_JOB = "no submission in pai_job_table"
NO_INSTANCES = "no number of instances"
NO_GPU_TYPE = "CPU"


def read_raw(path: Path) -> Raw:
    """Read the folder, or a pai_task_table beside the other tables."""
    folder = path if path.is_dir() else path.parent
    table = gather_blocks(_blocks(folder, TASKS, HEADERS[TASKS]), _task_columns)
    jobs = gather_blocks(
        _blocks(folder, JOBS, ("job_name", "inst_id", "user", "start_time")), _job_columns
    )
    at = pc.index_in(table["job_name"], value_set=jobs["job_name"])
    spans = _spans(folder, table)
    columns = {
        **{name: table[name] for name in ("job_id", "gpus", "workers", "cpus", "mem_gib", ROW)},
        "user": jobs["user"].take(at),
        "submit_s": jobs["submit_s"].take(at),
        "queue_s": waits_s(_numbers(jobs["submit_s"].take(at)), spans[0]),
        **_names(folder, table, jobs["inst_id"].take(at)),
        **run_columns(*spans, table["state"].combine_chunks()),
    }
    columns[LEFT_OUT] = _reasons(columns, table)
    return drop_left_out(_file(folder, TASKS), to_table(columns), NAMES)


def is_folder(path: Path) -> bool:
    """Return whether it holds the table without which there are no tasks."""
    return any((path / f"{TASKS}{suffix}").is_file() for suffix in SUFFIXES)


def _file(folder: Path, name: str) -> Path:
    files = [folder / f"{name}{suffix}" for suffix in SUFFIXES]
    return next((file for file in files if file.is_file()), files[0])


def _blocks(folder: Path, name: str, selected: Sequence[str]) -> Iterator[Sheet]:
    return read_blocks(_file(folder, name), selected, names=HEADERS[name])


def _task_columns(sheet: Sheet) -> Columns:
    workers = sheet.number("inst_num")
    percent = sheet.number("plan_gpu")
    percent = np.where(np.isnan(percent), 0.0, percent)
    names = (sheet.text("job_name"), sheet.text("task_name"))
    return {
        "job_id": pc.binary_join_element_wise(*names, "/"),
        "job_name": names[0],
        "task_name": names[1],
        "workers": workers,
        "gpus": np.round(percent * workers, 6) / 100,
        "cpus": sheet.number("plan_cpu") / 100 * workers,
        "mem_gib": sheet.number("plan_mem") * workers,
        "start_s": _recorded(sheet.number("start_time")),
        "end_s": _recorded(sheet.number("end_time")),
        "state": map_texts(sheet.text("status"), STATES, "unknown"),
        "gpu_type": sheet.text("gpu_type"),
    }


def _job_columns(sheet: Sheet) -> Columns:
    return {
        "job_name": sheet.text("job_name"),
        "inst_id": sheet.text("inst_id"),
        "user": sheet.text("user"),
        "submit_s": _recorded(sheet.number("start_time")),
    }


def _names(folder: Path, table: pa.Table, inst_id: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Return name and GPU type of each task, by the group tags if they exist."""
    task_name, assigned_type = table["task_name"], table["gpu_type"]
    gpu_type, name = assigned_type, task_name
    if _file(folder, TAGS).is_file():
        tags = gather_blocks(
            _blocks(folder, TAGS, ("inst_id", "group", "gpu_type_spec")), _tag_columns
        )
        at = pc.index_in(inst_id, value_set=tags["inst_id"])
        name = pc.coalesce(tags["group"].take(at), task_name)
        gpu_type = tags["gpu_type_spec"].take(at)
    on_gpu = pc.and_(pc.greater(table["gpus"], 0), pc.not_equal(assigned_type, NO_GPU_TYPE))
    on_gpu = pc.fill_null(on_gpu, True)
    return {
        "job_name": name,
        "gpu_type": pc.if_else(on_gpu, gpu_type, pa.scalar(None, pa.string())),
    }


def _tag_columns(sheet: Sheet) -> Columns:
    return {name: sheet.text(name) for name in ("inst_id", "group", "gpu_type_spec")}


def _spans(folder: Path, table: pa.Table) -> tuple[Floats, Floats]:
    """Return start and end of each task: of its instances if recorded, else its own."""
    start_s, end_s = _numbers(table["start_s"]), _numbers(table["end_s"])
    if not _file(folder, INSTANCES).is_file():
        return start_s, end_s
    place = {key: row for row, key in enumerate(table["job_id"].to_pylist())}
    first_s, last_s = np.full(len(start_s), np.inf), np.full(len(end_s), -np.inf)
    open_ended = np.zeros(len(start_s), np.bool_)
    selected = ("job_name", "task_name", "start_time", "end_time")
    for sheet in _blocks(folder, INSTANCES, selected):
        keys = pc.binary_join_element_wise(sheet.text("job_name"), sheet.text("task_name"), "/")
        rows = np.array([place.get(key, -1) for key in keys.to_pylist()])
        began_s, ended_s = (
            _recorded(sheet.number("start_time")),
            _recorded(sheet.number("end_time")),
        )
        _widen(rows, began_s, ended_s, first_s, last_s, open_ended)
    ran = np.isfinite(first_s)
    ended = np.isfinite(last_s) & ~open_ended
    return (np.where(ran, first_s, start_s), np.where(ran, np.where(ended, last_s, np.nan), end_s))


def _widen(
    rows: NDArray[np.int64],
    began_s: Floats,
    ended_s: Floats,
    first_s: Floats,
    last_s: Floats,
    open_ended: NDArray[np.bool_],
) -> None:
    known = (rows >= 0) & ~np.isnan(began_s)
    np.minimum.at(first_s, rows[known], began_s[known])
    endless = np.isnan(ended_s)
    open_ended[rows[known & endless]] = True
    closed = known & ~endless
    np.maximum.at(last_s, rows[closed], ended_s[closed])


def _reasons(
    columns: Mapping[str, Floats | pa.Array | pa.ChunkedArray], table: pa.Table
) -> pa.ChunkedArray:
    few = ~(_numbers(table["workers"]) >= 1)
    lost = pc.is_null(columns["submit_s"])
    rest = pc.if_else(pa.array(few), NO_INSTANCES, columns[LEFT_OUT])
    return pc.if_else(lost, NO_JOB, rest)


def _recorded(times_s: Floats) -> Floats:
    """Return times with NaN for 0, which the tables have for a missing time."""
    return np.where(times_s == 0, np.nan, times_s)


def _numbers(values: pa.ChunkedArray) -> Floats:
    return np.array(values.to_numpy(), np.float64)
