"""`describe` prints for people and for programs, and answers a bad trace with one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simulator.workload.__main__ import BAD_TRACE, app
from simulator.workload.describe import summarize
from simulator.workload.source import load


def test_a_summary_counts_the_jobs_of_the_workload() -> None:
    trace = load("synthetic", 500, seed=3)
    summary = summarize(trace.jobs, 256, 160)
    assert summary.jobs == sum(summary.tenants.values()) == 500
    assert summary.gang_jobs == sum(job.gpus > 8 for job in trace.jobs)
    assert sum(summary.jobs_by_gpus.values()) == 500


def test_describe_prints_one_json_object() -> None:
    done = CliRunner().invoke(app, ["describe", "synthetic", "--jobs", "50", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["jobs"] == 50


def test_describe_prints_a_table() -> None:
    done = CliRunner().invoke(app, ["describe", "synthetic", "--jobs", "50"])
    assert done.exit_code == 0
    assert "median_duration_s" in done.stdout


def test_describe_answers_a_bad_trace_in_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["describe", str(tmp_path / "absent.parquet")])
    assert done.exit_code == BAD_TRACE
    assert len(done.stderr.splitlines()) == 1
    assert "no such file" in done.stderr


FIXTURES = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize(
    "trace",
    [
        *("cluster_log.csv", "cluster_job_log", "trace_seren.csv", "openb_pod_list.csv"),
        *("itp", "pai2020", "log.swf"),
    ],
)
def test_describe_takes_every_format(trace: str) -> None:
    done = CliRunner().invoke(app, ["describe", str(FIXTURES / trace), "--json"])
    summary = json.loads(done.stdout)
    assert summary["jobs"] == len(load(str(FIXTURES / trace)).jobs)
    assert summary["left_out"] == dict(load(str(FIXTURES / trace)).left_out)


def test_describe_takes_a_profile() -> None:
    done = CliRunner().invoke(app, ["describe", "synthetic:philly", "--jobs", "40", "--json"])
    assert json.loads(done.stdout)["jobs"] == 40
