"""Every defect of a public file is refused by file, row, column and rule."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.workload.errors import TraceError
from simulator.workload.source import load

FIXTURES = Path(__file__).parent / "fixtures"
FILES = {
    "cluster_log.csv": "helios",
    "trace_seren.csv": "acme",
    "openb_pod_list.csv": "gpu2023",
    "itp/cluster01.csv": "itp",
    "pai2020/pai_task_table.csv": "pai2020",
    "log.swf": "swf",
    "cluster_job_log": "philly",
}


def altered(folder: Path, name: str, old: str, new: str) -> TraceError:
    """Return the error of reading a fixture in which `old` is `new`."""
    text = (FIXTURES / name).read_text()
    assert old in text
    return written(folder, name, text.replace(old, new, 1).encode())


def written(folder: Path, name: str, content: bytes) -> TraceError:
    if name.startswith("pai2020/"):
        shutil.copytree(FIXTURES / "pai2020", folder, dirs_exist_ok=True)
    path = folder / Path(name).name
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        load(f"{FILES[name]}:{path}")
    assert caught.value.file == path
    assert str(path) in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("name", "old", "new", "column", "row", "rule"),
    [
        ("cluster_log.csv", ",vc,", ",vcx,", "vc", None, "is required but missing"),
        ("cluster_log.csv", ",16,64", ",x16,64", "gpu_num", 1, "must be a number, is 'x16'"),
        ("cluster_log.csv", ",16,64", ",,64", "gpu_num", 1, "must not be empty"),
        ("cluster_log.csv", ",16,64", ",-1,64", "gpu_num", 1, "must not be negative, is -1.0"),
        ("cluster_log.csv", ",16,64", ",inf,64", "gpu_num", 1, "must be a finite number, is inf"),
        ("cluster_log.csv", "04-01 00:10:01,", "04-31 00:10:01,", "submit_time", 2, "be a time"),
        ("cluster_log.csv", "04-01 00:10:01,", "04-01T00:10:01Z,", "submit_time", 2, "a time"),
        ("cluster_log.csv", "00:20:30", "00:19:30", "end_time", 1, "not be negative, is -30.0"),
        ("cluster_log.csv", "9003,", "9002,", "job_id", 2, "'9002' is also in row 1"),
        ("cluster_log.csv", ",86400,0", ",86400", None, 2, "must have 12 columns, has 11"),
        ("trace_seren.csv", "type", "kind", "type", None, "is required but missing"),
        ("trace_seren.csv", "00:00:02+08:00", "late", "start_time", 1, "must be a time"),
        ("trace_seren.csv", "00:00:02+08:00", "00:00:02", "start_time", 1, "+08:00"),
        ("trace_seren.csv", "03-02 00:00:02", "02-02 00:00:02", "end_time", 1, "not be negative"),
        ("openb_pod_list.csv", "gpu_milli", "gpu_m", "gpu_milli", None, "is required but missing"),
        ("openb_pod_list.csv", ",8,1000", ",eight,1000", "num_gpu", 1, "must be a number"),
        ("openb_pod_list.csv", ",1100,", ",103,", "deletion_time", 1, "not be negative, is -1.0"),
        ("openb_pod_list.csv", ",1,460", ",1,4", "num_gpu", 0, "must be 0 or at least 0.01"),
        ("itp/cluster01.csv", "num_gpu", "gpus", "num_gpu", None, "is required but missing"),
        ("itp/cluster01.csv", ",60,", ",-60,", "duration", 1, "must not be negative, is -60.0"),
        ("itp/cluster01.csv", ",60,", ",1e10,", "duration", 1, "must not exceed"),
        ("itp/cluster01.csv", ",10,60", ",ten,60", "submission_time", 1, "must be a number"),
        ("pai2020/pai_task_table.csv", "1990.0", "990.0", "end_time", 1, "not be negative, is -20"),
        ("pai2020/pai_task_table.csv", "400.0,20", "4OO,20", "plan_cpu", 1, "must be a number"),
        ("pai2020/pai_task_table.csv", ",50.0,MISC", ",-50,MISC", "plan_gpu", 1, "not be negative"),
        ("pai2020/pai_task_table.csv", ",50.0,MISC", ",50.0", None, 1, "have 10 columns, has 9"),
        ("log.swf", "50   16", "50   1x", "allocated processors", 1, "must be a number, is '1x'"),
        ("log.swf", "50   16", "-5   16", "run time", 1, "must not be negative, is -5.0"),
        ("log.swf", "50   16", "nan  16", "run time", 1, "must be a finite number, is nan"),
        ("log.swf", "50   16", "50", None, 1, "must have 18 fields, has 17"),
        ("cluster_job_log", '"vc"', '"vcs"', "vc", 0, "is required but missing"),
        ("cluster_job_log", '"aa11bb"', "7", "vc", 0, "must be text, is 7"),
        ("cluster_job_log", "01:13:00", "01:1", "attempts[0].end_time", 0, "must be a time"),
        ("cluster_job_log", "01:13:00", "01:11:00", "attempts[0].end_time", 0, "before the start"),
        ("cluster_job_log", '"gpus"', '"n"', "attempts[0].detail", 0, "a list of gpus"),
        ("cluster_job_log", '"attempts": []', '"attempts": 3', "attempts", 1, "must be a list"),
        ("cluster_job_log", "2017-10-07 01:00:00", "", "submitted_time", 1, "must not be empty"),
        ("cluster_job_log", '"Killed",', '"Killed"', None, 1, "is not readable JSON"),
        ("cluster_job_log", '"u1u1u1"\n  },', '"u1u1u1"\n  }', None, 1, "a comma"),
    ],
)
def test_a_defect_is_named_by_its_place(
    tmp_path: Path, name: str, old: str, new: str, column: str | None, row: int | None, rule: str
) -> None:
    error = altered(tmp_path, name, old, new)
    assert (error.column, error.row) == (column, row)
    assert rule in error.rule


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    assert written(tmp_path, name, content).rule == "is empty"


@pytest.mark.parametrize("name", FILES)
def test_a_file_without_rows_is_named(tmp_path: Path, name: str) -> None:
    if name.startswith("pai2020/"):
        pytest.skip("has no header: without rows it is empty")
    head = {"log.swf": b"; only a comment\n", "cluster_job_log": b"[]"}
    content = head.get(name) or (FIXTURES / name).read_bytes().splitlines()[0]
    assert written(tmp_path, name, content).rule == "holds no rows"


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("cluster_log.csv", b"uBbbb"),
        ("trace_seren.csv", b"u02"),
        ("openb_pod_list.csv", b"G2"),
        ("pai2020/pai_task_table.csv", b"worker"),
    ],
)
def test_text_that_is_not_utf8_is_named_by_its_row(tmp_path: Path, name: str, old: bytes) -> None:
    content = (FIXTURES / name).read_bytes().replace(old, b"caf\xe9", 1)
    lines = content.split(b"\n")
    row = next(n for n, line in enumerate(lines) if b"\xe9" in line)
    error = written(tmp_path, name, content)
    assert (error.row, error.rule) == (row - ("pai2020" not in name), "must be UTF-8")


def test_json_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    content = (FIXTURES / "cluster_job_log").read_bytes().replace(b"u2u2u2", b"caf\xe9")
    assert written(tmp_path, "cluster_job_log", content).rule == "must be UTF-8"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_json_cut_short_is_named(tmp_path: Path, share: float) -> None:
    content = (FIXTURES / "cluster_job_log").read_bytes()
    error = written(tmp_path, "cluster_job_log", content[: int(len(content.rstrip()) * share)])
    assert "cut short" in error.rule
    assert error.row is not None


@pytest.mark.parametrize("name", FILES)
def test_a_gzip_file_cut_short_is_named(tmp_path: Path, name: str) -> None:
    packed = gzip.compress((FIXTURES / name).read_bytes())
    assert "damaged gzip file" in written(tmp_path, name, packed[:-12]).rule


def test_a_tar_archive_is_to_be_unpacked_first(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.add(FIXTURES / "cluster_log.csv", "cluster_log.csv")
    path = tmp_path / "data.tar.gz"
    path.write_bytes(archive.getvalue())
    with pytest.raises(TraceError, match="unpack it"):
        load(str(path))


def test_a_file_in_no_known_format_is_an_error_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("when,what\n1,2\n")
    with pytest.raises(TraceError, match="in no known format; name one of parquet, philly"):
        load(str(path))
    (tmp_path / "folder").mkdir()
    with pytest.raises(TraceError, match="in no known format"):
        load(str(tmp_path / "folder"))


def test_a_trace_without_a_started_job_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "cluster_log.csv").read_text().splitlines()
    error = written(tmp_path, "cluster_log.csv", f"{text[0]}\n{text[4]}\n".encode())
    assert error.rule == "holds no job that ever started"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(list(FILES)),
    st.floats(0, 1),
    st.integers(0, 12),
    st.binary(max_size=8)
    | st.sampled_from([b",", b"\n", b'"', b"-1", b"nan", b"1e400", b"\xff", b"]"]),
)
def test_damaged_files_are_read_or_refused_but_never_break_the_reader(
    name: str, place: float, cut: int, put: bytes
) -> None:
    content = (FIXTURES / name).read_bytes()
    at = int(place * len(content))
    with tempfile.TemporaryDirectory() as folder:
        if name.startswith("pai2020/"):
            shutil.copytree(FIXTURES / "pai2020", folder, dirs_exist_ok=True)
        path = Path(folder) / Path(name).name
        path.write_bytes(content[:at] + put + content[at + cut :])
        with suppress(TraceError):
            load(f"{FILES[name]}:{path}")
