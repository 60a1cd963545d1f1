"""Faults in turns, two at once, and kills in the middle of their mitigation, on virtual nodes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from infra.supervisor import supervise
from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth
from tests.e2e.slow_jobs import events, second_attempt, virtual_nodes
from tests.e2e.stand import POOL, Json, Stand, a_stand, eventually

NODES = virtual_nodes(8)
WITHIN_S = 240.0
COST_S = 8
"""That a migration is taken to cost: more than one turn of a flapping fault loses."""
SETTINGS = (
    "mitigation_share=0.5",
    f"migration_cost_s={COST_S}",
    "allow_injection=true",
    "lease_s=600",
)
"""The lease is so long that a busy machine loses no node, with the attempt and the fault on it."""

pytestmark = [pytest.mark.parts, pytest.mark.stack]


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "throttle", nodes=NODES) as stand:
        berth(stand, "pools", "set", POOL, *SETTINGS)
        yield stand


def gang(stand: Stand, workers: int) -> tuple[str, list[str]]:
    """Return a job that runs, and its nodes."""
    submitted = stand.submit(
        caller="ada",
        name="gang",
        gang={"workers": workers, "gpus_per_worker": 1},
        checkpoint_interval_s=5,
        simulated={"duration_s": 1e6, "iteration_s": 0.2},
    )
    job_id = str(submitted["job_id"])
    return job_id, [str(name) for name in stand.until(job_id, "running")["nodes"]]


def suspected(stand: Stand, job_id: str) -> list[str]:
    """Return the nodes of its suspicions; a job as a whole has none."""
    return sorted({r["node_id"] for r in events(stand, job_id, "fault.suspected.v1")} - {""})


def nodes_of_attempts(stand: Stand, job_id: str) -> list[list[str]]:
    """Return the nodes of each of its placements, the first one first."""
    placed = events(stand, job_id, "job.placed.v1")
    return [[str(own["node_id"]) for own in row["allocations"]] for row in placed]


def is_running_anew(stand: Stand, job_id: str) -> bool:
    row = stand.job(job_id)
    return row is not None and row["phase"] == "running" and row["attempt"] > 1


def generation(stand: Stand, node: str) -> int:
    """Return how many lives of a node have joined."""
    row = stand.get(f"/v1/nodes/{node}")
    return int(row["generation"]) if row else 0


def kill(stand: Stand, name: str) -> None:
    """Kill a service; return once the supervisor has started it again."""
    before = eventually(lambda: supervise.pid_of(stand.stack.data_dir, name))
    os.kill(before, signal.SIGKILL)
    eventually(lambda: supervise.pid_of(stand.stack.data_dir, name) not in (0, before))


def end(stand: Stand, job_id: str, *nodes: str) -> None:
    """End the job, the injected faults and what they left."""
    berth(stand, "cancel", job_id)
    for node in nodes:
        berth(stand, "inject", "end", "--node", node)
        berth(stand, "uncordon", node)


def test_a_job_leaves_a_node_that_is_slow_in_turns(stand: Stand) -> None:
    """No turn alone costs as much as the migration."""
    berth(stand, "pools", "set", POOL, "mitigation=automatic")
    job_id, nodes = gang(stand, 4)
    berth(stand, "inject", "flap", "--node", nodes[1], "--factor", "3", "--for", "30m")
    row = eventually(lambda: second_attempt(stand, job_id), WITHIN_S)
    assert nodes[1] not in row["nodes"]
    [applied, *_] = events(stand, job_id, "mitigation.applied.v1", "migrate")
    assert applied["node_ids"] == [nodes[1]]
    end(stand, job_id, nodes[1])


def test_two_faults_are_one_plan_and_kills_in_its_middle_neither_lose_nor_repeat_it(
    stand: Stand,
) -> None:
    berth(stand, "pools", "set", POOL, "mitigation=off")
    job_id, nodes = gang(stand, 5)
    slow = sorted((nodes[0], nodes[3]))
    for node in slow:
        berth(stand, "inject", "slow", "--node", node, "--factor", "3", "--for", "30m")

    eventually(lambda: suspected(stand, job_id) == slow, WITHIN_S)
    berth(stand, "pools", "set", POOL, "mitigation=approve")
    [plan, *_] = eventually(
        lambda: events(stand, job_id, "mitigation.planned.v1", "migrate"), WITHIN_S
    )
    assert sorted(plan["node_ids"]) == slow
    kill(stand, "failslow")
    berth(stand, "faults", "approve", plan["plan_id"])
    for name in ("failslow", "placement"):
        kill(stand, name)
    [carried] = eventually(
        lambda: events(stand, job_id, "mitigation.carried-out.v1", "migrate"), WITHIN_S
    )
    assert carried["plan_id"] == plan["plan_id"]
    # This kill ends all workers of virtual nodes: the job may be placed a third time.
    before = generation(stand, slow[0])
    kill(stand, "executor-virtual")
    eventually(lambda: generation(stand, slow[0]) > before, WITHIN_S)
    later = eventually(lambda: nodes_of_attempts(stand, job_id)[1:], WITHIN_S)
    assert not {node for nodes in later for node in nodes} & set(slow)
    eventually(lambda: is_running_anew(stand, job_id), WITHIN_S)
    for type in ("mitigation.applied.v1", "mitigation.carried-out.v1"):
        assert len(events(stand, job_id, type, "migrate")) == 1, type
    end(stand, job_id, *slow)
    assert stand.verify().violations == []


def test_a_job_that_ends_takes_its_faults_and_its_plan_with_it(stand: Stand) -> None:
    job_id, nodes = gang(stand, 4)
    berth(stand, "inject", "slow", "--node", nodes[2], "--factor", "3", "--for", "30m")
    [plan, *_] = eventually(
        lambda: events(stand, job_id, "mitigation.planned.v1", "migrate"), WITHIN_S
    )
    berth(stand, "cancel", job_id)
    cleared = eventually(
        lambda: events(stand, job_id, "mitigation.cleared.v1", "migrate"), WITHIN_S
    )
    assert {row["reason"] for row in cleared} == {"job_ended"}
    path = f"/v1/faults/plans/{plan['plan_id'].replace('/', '%2F')}/approve"
    status, ticket = stand.call("POST", path, {"pool": POOL})
    assert status == 202
    answer = stand.answer(ticket["command_id"])
    assert (answer["accepted"], answer["reason"]) == (False, "unknown_plan")
    berth(stand, "inject", "end", "--node", nodes[2])


def test_the_fault_of_a_node_that_is_lost_is_over(stand: Stand) -> None:
    node = "n-7"
    berth(stand, "inject", "slow", "--node", node, "--for", "30m")
    eventually(lambda: (stand.get(f"/v1/nodes/{node}") or {}).get("injection"), WITHIN_S)
    berth(stand, "nodes", "lost", node)
    row = eventually(lambda: ended_injection(stand, node), WITHIN_S)
    assert row["state"] in ("declared", "joined", "lost")
    assert stand.verify().violations == []


def ended_injection(stand: Stand, node: str) -> Json | None:
    row = stand.get(f"/v1/nodes/{node}")
    return row if row and row["injection"] is None else None
