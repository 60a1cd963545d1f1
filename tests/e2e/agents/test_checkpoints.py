"""A training that reports a checkpoint is preempted by rank, and keeps its work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.agents.jobs import berth, submit
from tests.e2e.joined import a_joined_node
from tests.e2e.stand import LOCAL_POOL, Stand, eventually

pytestmark = [pytest.mark.stack, pytest.mark.parts]

RANKED = {
    "base_policy": "sjf",
    "runtime": "user",
    "preemption": "ranked",
    "min_residency_s": 0,
    "start_protection_s": 0,
    "preempt_margin": 0,
    "checkpoint_window_s": 600,
    "loss_share": 1,
    "large_gang_share": 1,
}
SAVES = """
import os, sys, time
reporter, saved = sys.argv[1:]
sys.path.insert(0, reporter)
from berth_reporter import checkpoint
while not os.path.exists(saved):
    time.sleep(0.05)
while True:
    checkpoint(step=42)
    time.sleep(1)
"""
"""Says again and again that it has written a checkpoint, once a file is there."""


def test_a_training_is_preempted_by_rank_once_it_reports_a_checkpoint(
    stand: Stand, tmp_path: Path
) -> None:
    """It names no interval, so that nothing but its report lets rank stop it."""
    settings = [f"{name}={value}" for name, value in RANKED.items()]
    berth(stand, "pools", "set", LOCAL_POOL, *settings)
    reporter, saved = Path(__file__).parents[3] / "reporter", tmp_path / "saved"
    command = [sys.executable, "-c", SAVES, str(reporter), str(saved)]
    with a_joined_node(stand, LOCAL_POOL, "ranked-1", gpus=1):
        long = submit(stand, command, LOCAL_POOL, walltime_s=50_000)
        eventually(lambda: (row := stand.job(long)) and row["phase"] == "running")
        short = submit(stand, "exit 0", LOCAL_POOL, walltime_s=60)
        eventually(lambda: (row := stand.job(short)) and row["reason"])
        assert [row["preemptions"] for row in (stand.job(long),) if row] == [0]
        saved.touch()
        assert stand.ended(short)["phase"] == "succeeded"
        timeline = (stand.get(f"/v1/jobs/{long}/timeline") or {})["items"]
        [stop] = [event["data"] for event in timeline if event["type"] == "job.preempted.v1"]
        [began] = [event["at"] for event in timeline if event["type"] == "job.started.v1"][:1]
        [stopped] = [event["at"] for event in timeline if event["type"] == "job.preempted.v1"]
        assert (stop["reason"], stop["by_job_id"]) == ("outranked", short)
        assert stop["lost_work_s"] < (stopped - began) / 1000, "the checkpoint keeps the rest"
        eventually(lambda: (row := stand.job(long)) and row["checkpoint_step"] == 42)
        shown = dict(line.split(None, 1) for line in berth(stand, "show", long).splitlines())
        assert shown["checkpoint_step"] == "42" and shown["checkpointed_at"] != "-"
        berth(stand, "cancel", long)
        assert stand.ended(long)["phase"] == "cancelled"
