"""Every defect of a trace file is refused by file, column, row and rule; good rows are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.workload.errors import TraceError
from simulator.workload.names import DEMO_TENANTS
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

GOOD: dict[str, list[Any]] = {
    "job_id": ["b", "a", "c"],
    "submit_s": [5.0, 5.0, 1.0],
    "duration_s": [10.0, 20.0, 30.0],
    "gpus": [12.0, 0.5, 0.0],
}


def written(folder: Path, **columns: list[Any]) -> Path:
    path = folder / "trace.parquet"
    kept = {name: values for name, values in {**GOOD, **columns}.items() if values}
    pq.write_table(pa.table(kept), path)
    return path


def read(
    path: Path, jobs: int | None = None, tenants: Sequence[str] = DEMO_TENANTS
) -> list[WorkloadJob]:
    return load(str(path), jobs, tenants=tenants).jobs


def refused(path: Path) -> TraceError:
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    return caught.value


def test_jobs_come_by_time_and_then_by_key(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert [job.job_key for job in read(path)] == ["c", "a", "b"]
    assert [job.job_key for job in read(path, 2)] == ["c", "a"]


def test_a_value_that_the_trace_lacks_gets_the_documented_default(tmp_path: Path) -> None:
    job = read(written(tmp_path), tenants=["only"])[2]
    assert (job.tenant, job.user, job.name) == ("only", "unknown", "b")
    assert (job.workers, job.gpus_per_worker) == (3, 4)
    assert (job.cpus, job.mem_gib, job.gpu_type, job.succeeded) == (1, 1, None, None)


def test_a_cpu_job_is_kept(tmp_path: Path) -> None:
    job = read(written(tmp_path))[0]
    assert (job.workers, job.gpus_per_worker, job.cpus) == (1, 0, 1)


def test_totals_of_a_job_are_shared_among_its_workers(tmp_path: Path) -> None:
    path = written(tmp_path, cpus=[96.0, None, 2.0], mem_gib=[384.0, 8.0, None])
    job = read(path)[2]
    assert (job.cpus, job.mem_gib) == (32, 128)


def test_columns_that_are_there_are_used(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        tenant=["vc-1", "VC 2", None],
        user=["u1", "", None],
        gpu_type=["A100 80G", None, ""],
        state=["completed", "failed", "cancelled"],
        job_name=["train\x07", None, "prep"],
    )
    third, second, first = read(path, tenants=["only"])
    assert (first.tenant, first.user, first.gpu_type) == ("vc-1", "u1", "a100-80g")
    assert (first.name, first.succeeded) == ("train ", True)
    assert second.tenant.startswith("vc-2-")
    assert (second.user, second.gpu_type, second.succeeded) == ("unknown", None, False)
    assert (third.tenant, third.name, third.succeeded) == ("only", "prep", None)


def test_whole_number_columns_and_dictionaries_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    tenants = pa.array(["x", "x", "y"]).dictionary_encode()
    whole = {name: pa.array([1, 2, 3]) for name in ("job_id", "submit_s", "duration_s", "gpus")}
    pq.write_table(pa.table({**whole, "tenant": tenants}), path)
    assert [(job.job_key, job.tenant) for job in read(path)] == [("1", "x"), ("2", "x"), ("3", "y")]


def test_a_job_that_never_started_is_counted_and_has_no_run(tmp_path: Path) -> None:
    path = written(
        tmp_path, duration_s=[10.0, None, 30.0], state=[None, "pending_at_end", "completed"]
    )
    trace = load(str(path))
    assert [job.job_key for job in trace.jobs] == ["c", "b"]
    assert trace.never_started == 1


@pytest.mark.parametrize("column", ["submit_s", "duration_s", "gpus", "job_id"])
def test_a_required_column_that_is_missing_is_named(tmp_path: Path, column: str) -> None:
    error = refused(written(tmp_path, **{column: []}))
    assert (error.column, error.row, error.rule) == (column, None, "is required but missing")


@pytest.mark.parametrize("column", ["submit_s", "duration_s", "gpus", "cpus", "mem_gib"])
@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        (-1.0, "must not be negative, is -1.0"),
        (math.nan, "must be a finite number, is nan"),
        (math.inf, "must be a finite number, is inf"),
        (-math.inf, "must be a finite number, is -inf"),
    ],
)
def test_a_number_that_cannot_be_is_named(
    tmp_path: Path, column: str, bad: float, rule: str
) -> None:
    error = refused(written(tmp_path, **{column: [1.0, 1.0, bad]}))
    assert (error.column, error.row, error.rule) == (column, 2, rule)


@pytest.mark.parametrize("column", ["submit_s", "duration_s", "gpus", "job_id"])
def test_an_empty_field_of_a_required_column_is_named(tmp_path: Path, column: str) -> None:
    error = refused(written(tmp_path, **{column: [GOOD[column][0], None, GOOD[column][2]]}))
    assert (error.column, error.row, error.rule) == (column, 1, "must not be empty")


@pytest.mark.parametrize(
    ("column", "bad", "rule"),
    [
        ("duration_s", 1e10, "must not exceed"),
        ("gpus", 0.001, "must be 0 or at least 0.01"),
        ("gpus", 1e6, "more than 4096 workers"),
        ("cpus", 1e5, "more than 1024 per worker"),
        ("mem_gib", 1e6, "more than 16384 per worker"),
    ],
)
def test_an_absurd_number_is_named(tmp_path: Path, column: str, bad: float, rule: str) -> None:
    error = refused(written(tmp_path, **{column: [1.0, bad, 1.0]}))
    assert (error.column, error.row) == (column, 1)
    assert rule in error.rule


def test_a_key_that_comes_twice_is_named_with_both_rows(tmp_path: Path) -> None:
    error = refused(written(tmp_path, job_id=["a", "b", "a"]))
    assert (error.column, error.row) == ("job_id", 2)
    assert "'a' is also in row 0" in error.rule


@pytest.mark.parametrize("key", ["", "k" * 129])
def test_a_key_that_no_submit_could_carry_is_named(tmp_path: Path, key: str) -> None:
    assert refused(written(tmp_path, job_id=["a", key, "c"])).row == 1


@pytest.mark.parametrize(
    ("column", "values"),
    [("gpus", ["one", "two", "three"]), ("gpus", [True, False, True]), ("tenant", [[1], [2], [3]])],
)
def test_a_column_of_another_type_is_named(tmp_path: Path, column: str, values: list[Any]) -> None:
    error = refused(written(tmp_path, **{column: values}))
    assert error.column == column
    assert error.rule.startswith("must hold")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path / "absent.parquet").rule.startswith("no such file")


def test_a_file_of_another_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    path.write_text("job_id,submit_s\n")
    assert "is not a readable parquet file" in refused(path).rule


def test_a_file_cut_short_is_named(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "is not a readable parquet file" in refused(path).rule


def test_a_file_damaged_inside_is_named(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])
    assert "is not a readable parquet file" in refused(path).rule


def test_a_trace_without_jobs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    pq.write_table(pa.table(GOOD).slice(0, 0), path)
    assert "no job" in refused(path).rule
