"""A training reports its iterations on a real node, which sharpens the estimate of the next job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth
from tests.e2e.joined import a_joined_node
from tests.e2e.stand import LOCAL_POOL, Json, Stand, a_stand, eventually

pytestmark = [pytest.mark.stack, pytest.mark.parts]

STEPS = """
import sys, time
sys.path.insert(0, sys.argv[1])
from berth_reporter import Reporter
reporter = Reporter()
for step in range(100_000):
    with reporter.iteration(step, steps_total=100_000):
        time.sleep(0.05)
"""
"""A training of an hour and a half, or more on a busy machine."""


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "failslow", "throttle") as stand:
        yield stand


def submit(stand: Stand, *command: str) -> str:
    spec = {"name": "job", "gang": {"workers": 1}, "command": command}

    def taken() -> Json | None:
        body = {"pool": LOCAL_POOL, "spec": spec}
        status, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
        return ticket if status == 202 else None

    return str(eventually(taken)["job_id"])


def test_the_start_of_the_next_job_follows_from_the_iterations_of_a_training(stand: Stand) -> None:
    """Nothing is known of the pool's jobs but what the running one reports."""
    reporter = Path(__file__).parents[2] / "reporter"
    with a_joined_node(stand, LOCAL_POOL, "steps-1", gpus=1):
        training = submit(stand, sys.executable, "-c", STEPS, str(reporter))
        row = eventually(lambda: j if (j := stand.job(training)) and j["expected_end_at"] else None)
        assert row["progress_total"] == 100_000
        rest_ms = row["expected_end_at"] - row["progressed_at"]
        assert rest_ms > 3_600_000, "each iteration takes 50 ms or more"
        behind = submit(stand, "sh", "-c", "exit 0")

        def start_at_the_end() -> Json | None:
            """Return when the job behind starts, once that is the end which is reported."""
            end = (stand.job(training) or {}).get("expected_end_at", 0)
            start = (stand.get(f"/v1/jobs/{behind}/why") or {}).get("start")
            return start if start and start["p10_at"] <= end <= start["p90_at"] else None

        start = eventually(start_at_the_end)
        assert start["p90_at"] - start["p10_at"] < (start["p90_at"] - row["progressed_at"]) / 3
        assert "starts between" in berth(stand, "why", behind)
        for verb in ("why", "show"):
            shown = berth(stand, verb, training)
            assert "of 100,000 at" in shown and "left by its own reports" in shown
        berth(stand, "cancel", training)
        assert stand.ended(behind)["phase"] == "succeeded"
