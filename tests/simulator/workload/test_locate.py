"""A trace is found by path or by name, and the real ones are all readable."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.workload.errors import TraceError
from simulator.workload.locate import VARIABLE, has_trace, job_traces, locate, traces_folder
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


def test_the_folder_is_the_one_that_is_set_else_one_beside_the_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "berth"
    assert traces_folder({}, checkout) is None, "an installation is no checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()
    assert traces_folder({}, checkout) == tmp_path / "shared" / "traces"
    assert traces_folder({VARIABLE: "/data/traces"}, checkout) == Path("/data/traces")


def test_without_a_folder_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulator.workload.locate.traces_folder", lambda: None)
    with pytest.raises(TraceError, match="^absent: no such file, and BERTH_TRACES is not set"):
        locate("absent")
    assert not has_trace("absent")


@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_a_real_trace_is_read_or_counted(name: str) -> None:
    if not has_trace(name):
        pytest.skip(f"needs the shared trace {name}")
    trace = load(name)
    assert len(trace.jobs) + trace.never_started == ROWS[name]
    order = [(job.submit_s, job.job_key) for job in trace.jobs]
    assert order == sorted(order)


def test_the_list_of_job_traces_holds_all_that_are_known() -> None:
    folder = traces_folder()
    if folder is None or not folder.is_dir():
        pytest.skip("needs the shared traces")
    assert {path.stem for path in job_traces(folder)} >= set(ROWS)
