"""The arrays of a trace hold the jobs of `load`, in its order and its words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.workload.columns import UNKNOWN
from simulator.workload.jobs import jobs_of
from simulator.workload.locate import has_trace
from simulator.workload.names import DEMO_TENANTS
from simulator.workload.source import load, read_columns

ROWS: dict[str, list[Any]] = {
    "job_id": ["b", "a", "c", "d"],
    "submit_s": [5.0, 5.0, 1.0, 0.0],
    "duration_s": [10.0, 20.0, 30.0, None],
    "gpus": [12.0, 0.5, 0.0, 1.0],
    "tenant": ["VC 1", None, "x", "never-seen-running"],
    "user": ["u", "u", None, "v"],
    "job_name": ["train", None, "train", "other"],
    "gpu_type": ["V100M16|V100M32", None, "T4", None],
    "state": ["completed", "failed", "cancelled", "pending_at_end"],
    "cpus": [96.0, 2.0, None, None],
    "walltime_s": [3600.0, None, None, None],
    "qos": ["LS", None, "BE", None],
    "checkpoint_interval_s": [600.0, 0.0, None, None],
}


def written(folder: Path) -> str:
    path = folder / "trace.parquet"
    pq.write_table(pa.table(ROWS), path)
    return str(path)


def test_arrays_have_the_order_and_the_values_of_the_jobs(tmp_path: Path) -> None:
    columns = read_columns(written(tmp_path))
    assert columns.job_keys == ("c", "a", "b")
    assert columns.submit_s.tolist() == [1, 5, 5]
    assert columns.gpus.tolist() == [0, 0.5, 12]
    assert columns.workers.tolist() == [1, 1, 3]
    assert columns.gpus_per_worker.tolist() == [0, 0.5, 4]
    assert columns.cpus.tolist() == [1, 2, 32]
    assert columns.outcome.tolist() == [UNKNOWN, 0, 1]
    assert np.isnan(columns.walltime_s[:2]).all() and columns.walltime_s[2] == 3600
    assert columns.checkpoint_interval_s.tolist()[1:] == [0, 600]
    assert np.isnan(columns.checkpoint_interval_s[0])
    assert columns.never_started == 1


def test_a_value_that_the_trace_lacks_has_no_code(tmp_path: Path) -> None:
    columns = read_columns(written(tmp_path))
    assert columns.tenant.tolist() == [0, UNKNOWN, 1]
    assert columns.tenants[0] == "x" and columns.tenants[1].startswith("vc-1-")
    assert (columns.user.tolist(), columns.users) == ([UNKNOWN, 0, 0], ("u",))
    assert (columns.name.tolist(), columns.names) == ([0, UNKNOWN, 0], ("train",))
    assert (columns.gpu_type.tolist(), columns.gpu_types) == (
        [0, UNKNOWN, 1],
        ("t4", "v100m16|v100m32"),
    )
    assert columns.qos_classes == ("BE", "LS")


def test_a_job_may_have_any_of_several_gpu_types(tmp_path: Path) -> None:
    assert load(written(tmp_path)).jobs[2].gpu_types == ("v100m16", "v100m32")


def test_two_texts_of_one_gpu_type_share_its_code(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    pq.write_table(pa.table({**ROWS, "gpu_type": ["A100", "a100", None, None]}), path)
    assert read_columns(str(path)).gpu_types == ("a100",)


def test_the_synthetic_workload_has_arrays_too() -> None:
    trace = load("synthetic", seed=3)
    columns = read_columns("synthetic", seed=3)
    assert len(columns) == len(trace.jobs)
    assert jobs_of(columns, None, ()) == trace.jobs


@pytest.mark.parametrize("name", ["alibaba_gpu_2023", "helios_vc_users", "philly"])
def test_arrays_of_a_real_trace_are_those_of_its_jobs(name: str) -> None:
    if not has_trace(name):
        pytest.skip(f"needs the shared trace {name}")
    columns = read_columns(name)
    trace = load(name)
    assert jobs_of(columns, None, DEMO_TENANTS) == trace.jobs
    assert columns.never_started == trace.never_started


def test_the_first_rows_are_those_of_the_first_jobs(tmp_path: Path) -> None:
    columns = read_columns(written(tmp_path), 2)
    assert (len(columns), columns.job_keys, columns.gpus.tolist()) == (2, ("c", "a"), [0, 0.5])
