"""Gangs with a slow link and no slow worker: their nodes are measured, and one of them is left."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth
from tests.e2e.slow_jobs import events
from tests.e2e.stand import POOL, Json, Stand, a_stand, eventually

WORKERS = 6
NODES = {
    "pool": POOL,
    "backend": "virtual",
    "nodes": [
        {"id": "n-{0..6}", "count": 7, "gpu_type": "a100", "gpus": 2, "cpus": 8, "mem_gib": 64}
    ],
}
WITHIN_S = 300.0
UNDISTURBED_S = 3.0
"""Time of 90 iterations without a fault, beside which the later ones are slow."""
SETTINGS = (
    "time_scale=30",
    "mitigation=automatic",
    "mitigation_share=0.3",
    "migration_cost_s=10",
    "allow_injection=true",
)

pytestmark = [pytest.mark.parts, pytest.mark.stack]


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "throttle", nodes=NODES) as stand:
        berth(stand, "pools", "set", POOL, *SETTINGS)
        yield stand


def one_or_more(stand: Stand, job_id: str, type: str) -> list[Json]:
    return eventually(lambda: events(stand, job_id, type), WITHIN_S)


def a_gang(stand: Stand, tenant: str, **per_worker: float) -> str:
    spec: dict[str, Any] = {
        "name": "link",
        "gang": {"workers": WORKERS, "gpus_per_worker": 1, **per_worker},
        "simulated": {"duration_s": 1e6, "iteration_s": 1.0},
    }
    job_id = str(stand.submit(caller=tenant, **spec)["job_id"])
    stand.until(job_id, "running")
    return job_id


def test_a_slow_link_is_found_and_left_without_an_operator(stand: Stand) -> None:
    """Gangs of two tenants share nodes: one tenant's measurement cordons nothing alone."""
    # No node has room for two workers of the same gang.
    ada = a_gang(stand, "ada", cpus_per_worker=5, mem_gib_per_worker=1)
    bob = a_gang(stand, "bob", cpus_per_worker=3, mem_gib_per_worker=40)
    jobs = [ada, bob]
    of_ada, of_bob = ({*(stand.job(job_id) or {})["nodes"]} for job_id in jobs)
    slow = str(sorted(of_ada & of_bob)[2])
    time.sleep(UNDISTURBED_S)
    berth(stand, "inject", "link", "--node", slow, "--factor", "9", "--for", "60m")
    for job_id in jobs:
        [fault, *_] = one_or_more(stand, job_id, "fault.suspected.v1")
        assert (fault["kind"], fault["node_id"]) == ("job", ""), fault
        plans = one_or_more(stand, job_id, "mitigation.planned.v1")
        assert plans[0]["level"] == "validate" and slow in plans[0]["node_ids"]
    cordons = eventually(lambda: cordoned(stand), WITHIN_S)
    assert cordons == [slow]
    row = eventually(lambda: any_without(stand, jobs, slow), WITHIN_S)
    assert row["attempt"] > 1 and len(row["nodes"]) == WORKERS
    words = berth(stand, "why-slow", row["job_id"])
    # It may be there again when the verdict comes; then it migrates.
    ways = (f"cordoned {slow}", f"migrate the workers of {slow}")
    assert "measure " in words and any(way in words for way in ways), words


def any_without(stand: Stand, jobs: list[str], node: str) -> Json | None:
    rows = (running_without(stand, job_id, node) for job_id in jobs)
    return next((row for row in rows if row), None)


def cordoned(stand: Stand) -> list[str]:
    rows = json.loads(berth(stand, "nodes", "list", "--json"))
    return [row["node_id"] for row in rows if row["cordoned"]]


def running_without(stand: Stand, job_id: str, node: str) -> Json | None:
    row = stand.job(job_id)
    return row if row and row["phase"] == "running" and node not in row["nodes"] else None


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
