"""Each public format is read from a small file in its exact shape, plain or gzipped."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from simulator.workload.errors import TraceError
from simulator.workload.formats import READERS, detect_format, split
from simulator.workload.readers.pai2020 import NO_INSTANCES, NO_JOB
from simulator.workload.readers.runs import NO_END
from simulator.workload.readers.swf import NO_PROCESSORS, PART_OF_A_JOB
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import Trace, load, read_columns

FIXTURES = Path(__file__).parent / "fixtures"
FORMATS = {
    "cluster_log.csv": "helios",
    "trace_seren.csv": "acme",
    "trace_kalos.csv": "acme",
    "openb_pod_list.csv": "gpu2023",
    "itp": "itp",
    "itp/cluster01.csv": "itp",
    "pai2020": "pai2020",
    "pai2020/pai_task_table.csv": "pai2020",
    "log.swf": "swf",
    "cluster_job_log": "philly",
}
FILES = [name for name in FORMATS if (FIXTURES / name).is_file() and "/" not in name]


def read(name: str) -> Trace:
    return load(str(FIXTURES / name), tenants=["only"])


def job_of(trace: Trace, key: str) -> WorkloadJob:
    return next(job for job in trace.jobs if job.job_key == key)


def shape(job: WorkloadJob) -> tuple[int, float]:
    return job.workers, job.gpus_per_worker


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_detected_and_may_be_named(name: str) -> None:
    path = FIXTURES / name
    assert detect_format(path) == FORMATS[name]
    assert load(f"{FORMATS[name]}:{path}") == load(str(path))


@pytest.mark.parametrize("name", FILES)
def test_a_gzipped_file_holds_the_same_jobs(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress((FIXTURES / name).read_bytes()))
    assert load(str(path), tenants=["only"]) == read(name)


@pytest.mark.parametrize("name", FILES)
def test_windows_line_ends_change_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((FIXTURES / name).read_bytes().replace(b"\n", b"\r\n"))
    assert load(str(path), tenants=["only"]) == read(name)


@pytest.mark.parametrize("name", FILES)
def test_a_file_under_another_name_is_known_by_its_beginning(name: str, tmp_path: Path) -> None:
    path = tmp_path / "something"
    shutil.copy(FIXTURES / name, path)
    assert detect_format(path) == FORMATS[name]


@pytest.mark.parametrize("name", FORMATS)
def test_arrays_hold_the_jobs_of_the_rows(name: str) -> None:
    columns, trace = read_columns(str(FIXTURES / name)), read(name)
    assert columns.never_started == trace.never_started
    assert list(columns.job_keys) == [job.job_key for job in trace.jobs]
    np.testing.assert_array_equal(columns.gpus, [job.gpus for job in trace.jobs])
    np.testing.assert_array_equal(columns.duration_s, [job.duration_s for job in trace.jobs])


def test_helios() -> None:
    trace = read("cluster_log.csv")
    assert (trace.never_started, trace.left_out) == (1, {NO_END: 1})
    assert [job.job_key for job in trace.jobs] == ["9005", "9001", "9002", "9003"]
    first, gang, on_cpu = (job_of(trace, key) for key in ("9005", "9002", "9003"))
    assert (first.submit_s, first.duration_s, first.succeeded) == (0, 600, False)
    assert first.tenant.startswith("vctwo-") and first.user.startswith("ucccc-")
    assert (gang.submit_s, gang.queue_s, shape(gang), gang.cpus) == (660, 600, (2, 8), 32)
    assert (on_cpu.gpus, on_cpu.succeeded) == (0, None)
    assert job_of(trace, "9001").succeeded is True


def test_helios_with_job_names(tmp_path: Path) -> None:
    path = tmp_path / "cluster_log.csv"
    lines = (FIXTURES / "cluster_log.csv").read_text().splitlines()
    path.write_text("\n".join([f"{lines[0]},jobname", *(f"{line},train" for line in lines[1:])]))
    assert {job.name for job in load(str(path)).jobs} == {"train"}


def test_acme_seren_has_times_of_a_zone_and_no_tenant() -> None:
    trace = read("trace_seren.csv")
    assert [job.job_key for job in trace.jobs] == ["502", "501"]
    assert [job.submit_s for job in trace.jobs] == [0, 10]
    assert [job.name for job in trace.jobs] == ["Pretrain", "Evaluation"]
    assert {job.tenant for job in trace.jobs} == {"only"}
    assert shape(trace.jobs[0]) == (4, 8)


def test_acme_kalos_runs_from_start_to_end_whatever_its_duration_column() -> None:
    trace = read("trace_kalos.csv")
    assert trace.never_started == 1
    (job,) = trace.jobs
    assert (job.duration_s, job.queue_s) == (20, 10)
    assert (shape(job), job.cpus, job.mem_gib) == ((2, 8), 120, 500)


def test_gpu_2023_shares_gpus_and_allows_types() -> None:
    trace = read("openb_pod_list.csv")
    assert trace.never_started == 1
    part, either, whole = trace.jobs
    assert (shape(part), part.gpu_types, part.qos, part.succeeded) == ((1, 0.46), (), "LS", None)
    assert (either.gpu_types, either.succeeded) == (("v100m16", "v100m32"), False)
    assert (shape(whole), whole.cpus, whole.mem_gib, whole.queue_s) == ((1, 8), 88, 320, 4)
    assert (whole.duration_s, whole.succeeded) == (996, True)


def test_itp_is_one_tenant_per_cluster() -> None:
    trace = read("itp")
    assert [job.tenant for job in trace.jobs] == ["cluster01", "cluster02", "cluster01"]
    assert [job.submit_s for job in trace.jobs] == [10, 15, 20]
    assert [shape(job) for job in trace.jobs] == [(2, 8), (1, 1), (1, 4)]


def test_itp_takes_the_files_made_for_elasticflow(tmp_path: Path) -> None:
    path = tmp_path / "cluster03.csv"
    header = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration"
    path.write_text(f"{header}\nj1,5,100,bert,900,64,2,60\n")
    (job,) = load(str(path)).jobs
    assert (job.tenant, job.name, job.gpus, job.duration_s) == ("cluster03", "j1", 2, 60)


def test_a_key_of_two_clusters_is_named_with_both(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copy(FIXTURES / "itp" / "cluster01.csv", tmp_path / f"{name}.csv")
    with pytest.raises(TraceError, match="unique.*one.csv") as caught:
        load(str(tmp_path))
    assert (caught.value.file.name, caught.value.row) == ("two.csv", 0)


def test_pai_tasks_are_gangs_of_their_instances() -> None:
    trace = read("pai2020")
    assert trace.never_started == 1
    assert trace.left_out == {NO_END: 1, NO_INSTANCES: 1, NO_JOB: 1}
    server, worker, failed = trace.jobs
    assert (shape(server), server.gpu_type, server.cpus) == ((1, 0), None, 6)
    assert (shape(worker), worker.gpu_type, worker.mem_gib) == ((2, 0.5), "misc", 20)
    assert (worker.submit_s, worker.queue_s, worker.duration_s) == (1000, 10, 980)
    assert (worker.user, worker.name, worker.succeeded) == ("userone", "worker", True)
    assert failed.succeeded is False


def test_pai_group_tags_give_names_and_the_types_asked_for(tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / "pai2020", tmp_path / "pai")
    (folder / "pai_group_tag_table.csv").write_text(
        "instaaa,userone,V100M32,groupone,nmt\ninstbbb,usertwo,,,\n"
    )
    _, worker, failed = load(str(folder)).jobs
    assert (worker.name, worker.gpu_type) == ("groupone", "v100m32")
    assert (failed.name, failed.gpu_type) == ("tensorflow", None)


def test_pai_instances_say_when_a_task_really_ran(tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / "pai2020", tmp_path / "pai")
    rows = [
        "jobaaa,worker,i1,w1,instaaa,Terminated,1100.0,1900.0,m1",
        "jobaaa,worker,i2,w2,instaaa,Terminated,1090.0,1950.0,m2",
        "jobbbb,tensorflow,i3,w3,instbbb,Failed,1200.0,,m1",
        "jobzzz,worker,i4,w4,instzzz,Terminated,1.0,2.0,m1",
    ]
    (folder / "pai_instance_table.csv").write_text("\n".join(rows) + "\n")
    trace = load(str(folder))
    server, worker = trace.jobs
    assert (worker.queue_s, worker.duration_s) == (90, 860)
    assert server.duration_s == 990
    assert trace.left_out[NO_END] == 2


def test_pai_without_its_job_table_is_refused_by_that_file(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "pai2020" / "pai_task_table.csv", tmp_path)
    with pytest.raises(TraceError, match="pai_job_table.csv: no such file"):
        load(str(tmp_path))


def test_swf() -> None:
    trace = read("log.swf")
    assert (trace.never_started, trace.left_out) == (2, {NO_PROCESSORS: 1, PART_OF_A_JOB: 2})
    known, bare, summary = trace.jobs
    assert (known.tenant, known.user, known.name, known.qos) == (
        *("group1", "user3", "app7"),
        "queue2",
    )
    assert (known.walltime_s, known.queue_s, known.mem_gib) == (200, 10, 8)
    assert (bare.walltime_s, bare.name, shape(bare), bare.succeeded) == (None, "2", (2, 8), False)
    assert (summary.job_key, summary.tenant, summary.duration_s) == ("4", "only", 20)


def test_swf_of_more_than_a_block_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "long.swf"
    line = "{n} {n} 0 9 1 -1 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n"
    path.write_text("; header\n" + "".join(line.format(n=n) for n in range(70_000)))
    columns = read_columns(str(path))
    assert len(columns) == 70_000
    assert columns.submit_s[-1] == 69_999
    path.write_text(path.read_text() + "69999 70000 0 9 1 -1 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n")
    with pytest.raises(TraceError, match="also in row 69999") as caught:
        load(str(path))
    assert caught.value.row == 70_000


def test_philly() -> None:
    trace = read("cluster_job_log")
    assert (trace.never_started, trace.left_out) == (1, {NO_END: 1})
    over_the_clock, twice = trace.jobs
    assert (over_the_clock.submit_s, over_the_clock.duration_s) == (10, 1200)
    assert (twice.tenant, twice.user, twice.succeeded) == ("aa11bb", "u1u1u1", True)
    assert (twice.submit_s, twice.queue_s, twice.duration_s) == (690, 30, 3660)
    assert shape(twice) == (1, 4)


def test_a_folder_with_the_philly_log_is_philly(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "cluster_job_log", tmp_path)
    assert detect_format(tmp_path) == "philly"
    assert load(str(tmp_path)) == load(str(FIXTURES / "cluster_job_log"))


def test_only_a_known_format_is_cut_off_a_path() -> None:
    assert split("philly:x:y") == ("philly", "x:y")
    assert split("unknown:x") == (None, "unknown:x")
    assert set(FORMATS.values()) | {"parquet"} == set(READERS)


def test_philly_is_read_in_chunks_that_cut_anything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (FIXTURES / "cluster_job_log").read_text().replace("u1u1u1", "ü€𝄞")
    path = tmp_path / "cluster_job_log"
    path.write_text(text)
    whole = load(f"philly:{path}")
    for size in (1, 7, 1000):
        monkeypatch.setattr("simulator.workload.readers.philly.CHUNK_BYTES", size)
        assert load(f"philly:{path}") == whole


def test_a_users_jobs_stay_with_one_tenant() -> None:
    trace = load(str(FIXTURES / "pai2020"))
    tenants = {
        job.user: {other.tenant for other in trace.jobs if other.user == job.user}
        for job in trace.jobs
    }
    assert all(len(vocabulary) == 1 for vocabulary in tenants.values())
