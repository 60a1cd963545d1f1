"""A pipeline on a real node reports a slow link, gets warm-up counts as advice, and follows them.

The figures are made up and reported by four real processes through the agent's socket. Fail-slow is
killed between its plan and the acknowledgement.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth, output
from tests.e2e.joined import a_joined_node
from tests.e2e.slow_jobs import events
from tests.e2e.stand import LOCAL_POOL, Json, Stand, a_stand, eventually

pytestmark = [pytest.mark.stack, pytest.mark.parts]

STAGES = 4
UNDISTURBED = 200
"""Iterations before the link may be slow."""
TRAINING = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from berth_reporter import Reporter
stage = int(os.environ["RANK"])
reporter = Reporter(layout={"pp": stage}, microbatches=24)
begin_s = float(sys.argv[4])
for count in range(1_000_000):
    if count == int(sys.argv[5]):
        print("undisturbed", flush=True)
    time.sleep(0.05 - time.time() % 0.05)
    step = int((time.time() - begin_s) / 0.05)
    is_slow = os.path.exists(sys.argv[2]) and not os.path.exists(sys.argv[3])
    jitter = 0.002 * (step * 7 % 5)
    wait = (0.4 if is_slow else 0.1) + jitter
    phases = {"forward": 0.24, "backward": 0.24, "weight": 0.24}
    phases["link.pp"] = 0.06 if is_slow and stage == 2 else 0.0
    reporter.report(step, 0.8 + wait, own_s=0.8, wait_s=wait, phases=phases)
"""
"""Iterations of 0.9 s, or of 1.2 s while the link is slow: twenty a second, by the clock."""


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "throttle") as stand:
        yield stand


def submit(stand: Stand, slow: Path, adapted: Path) -> str:
    """Submit the training, of which the iterations count from now on."""
    reporter = Path(__file__).parents[2] / "reporter"
    words = [TRAINING, str(reporter), str(slow), str(adapted), str(time.time()), str(UNDISTURBED)]
    spec = {
        "name": "pipeline",
        "gang": {"workers": STAGES, "gpus_per_worker": 1, "cpus_per_worker": 0.1},
        "command": [sys.executable, "-c", *words],
    }

    def taken() -> Json | None:
        body = {"pool": LOCAL_POOL, "spec": spec}
        status, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
        return ticket if status == 202 else None

    return str(eventually(taken)["job_id"])


def test_a_pipeline_follows_the_advice_and_recovers(stand: Stand, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    slow, adapted = tmp_path / "slow", tmp_path / "adapted"
    with a_joined_node(stand, LOCAL_POOL, "stages-1", gpus=STAGES):
        job_id = submit(stand, slow, adapted)
        begun = {f"{rank}: undisturbed" for rank in range(STAGES)}
        eventually(lambda: begun <= {*output(stand, job_id)})
        slow.touch()
        [fault] = eventually(lambda: events(stand, job_id, "fault.suspected.v1"))
        assert (fault["kind"], fault["cause"]) == ("job", "communication")
        assert fault["pipeline"]["link_delay_s"] == pytest.approx([0.0, 0.06, 0.0])
        [stated, *_] = eventually(lambda: events(stand, job_id, "mitigation.expected.v1"))
        assert stated["level"] == "adapt_schedule"
        assert "next plan: " in berth(stand, "why-slow", job_id)
        [plan] = eventually(lambda: events(stand, job_id, "mitigation.planned.v1"))
        assert (plan["level"], plan["actor"]) == ("adapt_schedule", "framework")
        assert plan["schedule"]["warmup"] == [13, 11, 3, 1]
        os.kill(stand.pids()["failslow"], signal.SIGKILL)
        words = berth(stand, "why-slow", job_id)
        assert "warm-up forwards by stage: 13, 11, 3, 1" in words
        berth(stand, "faults", "approve", plan["plan_id"], "--reason", "more warm-up")
        [known] = eventually(lambda: events(stand, job_id, "mitigation.applied.v1"))
        assert (known["plan_id"], known["by"]) == (plan["plan_id"], "operator")
        adapted.touch()
        [end] = eventually(lambda: events(stand, job_id, "fault.cleared.v1"))
        assert (end["fault_id"], end["reason"]) == (fault["fault_id"], "recovered")
        [over] = eventually(lambda: events(stand, job_id, "mitigation.cleared.v1"))
        assert over["plan_id"] == plan["plan_id"]
        assert len(events(stand, job_id, "fault.suspected.v1")) == 1, "no alarm after the kill"
        berth(stand, "cancel", job_id)
        assert stand.ended(job_id)["phase"] == "cancelled"
    assert stand.verify().violations == []
