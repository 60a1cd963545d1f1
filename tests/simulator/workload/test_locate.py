"""A trace is found by path or by name, and the real ones are all readable."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.workload.errors import TraceError
from simulator.workload.locate import TRACES, job_traces, locate
from simulator.workload.source import load

pytestmark = pytest.mark.slow

ROWS = {
    "helios_venus": 77_574,
    "helios_vc_users": 1_452,
    "philly": 57_573,
    "msft_itp": 48_130,
    "alibaba_pai_2020": 42_073,
    "alibaba_gpu_2023": 8_152,
}


def trace_in(folder: Path, name: str) -> Path:
    path = folder / f"{name}.parquet"
    columns = {"job_id": ["a"], "submit_s": [0.0], "duration_s": [1.0], "gpus": [1.0]}
    pq.write_table(pa.table(columns), path)
    return path


def test_a_trace_is_found_by_path_by_name_and_by_file_name(tmp_path: Path) -> None:
    path = trace_in(tmp_path, "small")
    assert locate(str(path), Path("nowhere")) == path
    assert locate("small", tmp_path) == path
    assert locate("small.parquet", tmp_path) == path


def test_an_unknown_name_is_answered_with_the_job_traces_there_are(tmp_path: Path) -> None:
    trace_in(tmp_path, "small")
    (tmp_path / "broken.parquet").write_bytes(b"no")
    pq.write_table(pa.table({"rate": [1.0]}), tmp_path / "rates.parquet")
    with pytest.raises(TraceError, match="has small$"):
        locate("absent", tmp_path)


def test_an_absent_folder_is_answered_clearly(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no job trace$"):
        locate("absent", tmp_path / "none")


@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_a_real_trace_is_read_or_counted(name: str) -> None:
    if not (TRACES / f"{name}.parquet").is_file():
        pytest.skip(f"needs the shared trace {name}")
    trace = load(name)
    assert len(trace.jobs) + trace.never_started == ROWS[name]
    order = [(job.submit_s, job.job_key) for job in trace.jobs]
    assert order == sorted(order)


def test_the_list_of_job_traces_holds_all_that_are_known() -> None:
    if not TRACES.is_dir():
        pytest.skip("needs the shared traces")
    assert {path.stem for path in job_traces()} >= set(ROWS)
