"""The lines that a demo shows before its jobs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer.main import get_group

from cli.commands.llm import llm
from cli.demo.engines import MODEL
from cli.demo.summary import LLM_VERBS, advice, planned_failures
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
    assert f"200 jobs; {failing} of them fail on purpose; 3 more are programs on" in shown
    assert "berth llm" not in shown, "without engines"


def test_the_demo_names_the_verbs_of_its_endpoint() -> None:
    assert f"berth endpoints show {MODEL};" in LLM_VERBS[0]
    verbs = set(re.findall(r"berth llm (\w+)", "".join(LLM_VERBS)))
    known = {str(command.name) for command in get_group(llm).commands.values()}
    assert verbs <= known
