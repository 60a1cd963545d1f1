"""A gang that fills its pool has a slow worker: advice is acknowledged, then it is restarted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth
from tests.e2e.slow_jobs import events, second_attempt, virtual_nodes
from tests.e2e.stand import POOL, Json, Stand, a_stand, eventually

WORKERS = 4
NODES = virtual_nodes(4)
WITHIN_S = 120.0
SETTINGS = ("time_scale=20", "mitigation_share=0.3", "migration_cost_s=10", "allow_injection=true")

pytestmark = [pytest.mark.parts, pytest.mark.stack]


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "throttle", nodes=NODES) as stand:
        berth(stand, "pools", "set", POOL, *SETTINGS)
        yield stand


def test_advice_is_acknowledged_and_a_job_without_room_elsewhere_is_restarted(stand: Stand) -> None:
    submitted = stand.submit(
        caller="ada",
        name="full",
        gang={"workers": WORKERS, "gpus_per_worker": 1},
        checkpoint_interval_s=60,
        simulated={"duration_s": 1e6, "iteration_s": 1.0},
    )
    job_id = str(submitted["job_id"])
    stand.until(job_id, "running")
    berth(stand, "inject", "slow", "--node", "n-2", "--factor", "4", "--for", "60m")

    def plans(level: str) -> list[Json]:
        return events(stand, job_id, "mitigation.planned.v1", level)

    [advice] = eventually(lambda: plans("redistribute"), WITHIN_S)
    assert (advice["actor"], advice["node_ids"]) == ("framework", ["n-2"])
    approve = f"berth faults approve {advice['plan_id']}"
    eventually(lambda: approve in berth(stand, "why-slow", job_id), WITHIN_S)
    berth(stand, "faults", "approve", advice["plan_id"], "--reason", "fewer micro-batches")
    [known] = eventually(
        lambda: events(stand, job_id, "mitigation.applied.v1", "redistribute"), WITHIN_S
    )
    assert (known["by"], known["reason"]) == ("operator", "fewer micro-batches")
    assert approve not in berth(stand, "why-slow", job_id)

    berth(stand, "pools", "set", POOL, "mitigation=automatic")
    [restart, *_] = eventually(lambda: plans("restart"), WITHIN_S)
    tries = events(stand, job_id, "mitigation.applied.v1", "migrate")
    assert len(tries) > 1, "it had no room elsewhere"
    row = eventually(lambda: second_attempt(stand, job_id), WITHIN_S)
    assert sorted(row["nodes"]) == ["n-0", "n-1", "n-2", "n-3"]
    turned_down = "not carried out before it was over, as no other node had room"
    eventually(lambda: turned_down in berth(stand, "why-slow", job_id), WITHIN_S)
    words = berth(stand, "why-slow", job_id)
    assert f"plan {restart['plan_id']}" in words
    assert "restart from a checkpoint" in words and "it restarts where it ran" in words
    assert stand.verify().violations == []
