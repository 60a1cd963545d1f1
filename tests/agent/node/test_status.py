"""The words of `berth-agent status` for a report that may be old."""

from __future__ import annotations

import os
from typing import Any

import pytest

from berth_agent.linux import processes
from berth_agent.node.status import as_of_now, render

WRITTEN: dict[str, Any] = {
    "boot_id": "b1",
    "written_boot_ms": 100_000,
    "written_ms": 1_000_000,
    "state": "active",
    "problem": "",
    "draining": "",
    "executor": "https://e:1",
    "generation": 3,
    "lease_begun": True,
    "lease_over": False,
    "lease_end_boot_ms": 160_000,
    "workers": [],
}


def shown(now_boot_ms: int, *, running: bool = False, boot_id: str = "b1", **more: Any) -> str:
    status = as_of_now(
        {**WRITTEN, **more},
        running=running,
        boot_id=boot_id,
        now_boot_ms=now_boot_ms,
        now_ms=1_090_000,
    )
    return render(status)


@pytest.mark.parametrize(
    ("now_boot_ms", "more", "lease"),
    [
        (110_000, {}, "50 s left"),
        (160_000, {}, "over since 0 s"),
        (190_000, {}, "over since 30 s"),
        (110_000, {"lease_over": True}, "over"),
        (110_000, {"lease_end_boot_ms": None}, "without end"),
        (110_000, {"lease_begun": False, "lease_end_boot_ms": 0}, "not begun"),
    ],
)
def test_the_lease_is_shown_as_of_now(now_boot_ms: int, more: dict[str, Any], lease: str) -> None:
    assert f"lease       {lease}" in shown(now_boot_ms, **more).splitlines()


def test_an_agent_that_is_dead_is_shown_with_the_age_of_its_report() -> None:
    lines = shown(190_000).splitlines()
    assert lines[:2] == ["state       not running", "report      90 s old: active at that time"]
    assert shown(190_000, running=True).startswith("state       active\nexecutor")


def test_the_clock_of_another_boot_means_nothing() -> None:
    lines = shown(5_000, boot_id="b2").splitlines()
    assert "report      90 s old: active at that time" in lines
    assert "lease       over: the machine was restarted" in lines


def test_the_workers_of_a_dead_agent_are_looked_for() -> None:
    own = [os.getpid(), processes.started_ticks(os.getpid())]
    worker = {"allocation_id": "0/5/0/0", "phase": "running", "gpus": [0, 1]}
    text = "worker      0/5/0/0 running GPUs 0,1"
    living = [{**worker, "processes": [own]}]
    dead = [{**worker, "processes": [[own[0], own[1] + 1]]}]
    gone = f"{text} at that time; its process does not live any more"
    assert shown(0, workers=living).endswith(f"{text} at that time; its process still lives")
    assert shown(0, workers=dead).endswith(gone)
    assert shown(0, workers=living, boot_id="b2").endswith(gone), "a number of another boot"
    assert shown(0, workers=living, running=True).endswith(text)
