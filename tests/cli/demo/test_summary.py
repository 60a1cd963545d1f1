"""The lines that a demo shows before its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.demo.summary import advice, planned_failures
from cli.replay.workload import workload
from infra.supervisor.running import RunningStack


def test_the_demo_says_how_many_of_its_jobs_fail_on_purpose() -> None:
    jobs = workload("synthetic", 200, 0)
    failing = planned_failures(jobs)
    assert 20 < failing < 100
    assert failing == sum(job.succeeded is False for job in jobs)
    fields: dict[str, Any] = {
        "gateway": "http://127.0.0.1:1",
        "data_dir": Path("d"),
        "ports": {"gateway": {"metrics": 9100}},
        "traces": "",
    }
    stack = RunningStack.model_construct(**fields)
    shown = "\n".join(advice(stack, jobs))
    assert f"200 jobs; {failing} of them fail on purpose" in shown
