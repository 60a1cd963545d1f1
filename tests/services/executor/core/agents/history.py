"""Histories of a lane with two nodes that have an agent, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from services.executor.core.agents.evolve import end_record, evolve
from services.executor.core.agents.state import AgentPool
from shared.contracts.agents import Hello
from shared.contracts.attempts import JobStarted
from shared.contracts.base import Event
from shared.contracts.job_spec import JobSpec
from shared.contracts.nodes import NodeJoined
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.ledger.decider import Fact

UUID, OTHER_UUID = "a" * 32, "b" * 32
POOL = PoolConfigured(pool="gpu", partition=1, backends=("agent",))
SPEC = JobSpec.model_validate(
    {
        "name": "train",
        "gang": {"workers": 3, "gpus_per_worker": 1},
        "command": ["python", "train.py"],
        "env": {"A": "1"},
        "workdir": "/shared/train",
    }
)
ENQUEUED = JobEnqueued(job_id="j", tenant="ada", submitted_at=0, spec=SPEC)
PLACED = JobPlaced(
    job_id="j",
    tenant="ada",
    attempt=1,
    allocations=(
        Allocation(rank=0, node_id="n2", gpus=(0,)),
        Allocation(rank=1, node_id="n1", gpus=(0,), cpus=4, mem_gib=16),
        Allocation(rank=2, node_id="n1", gpus=(1,)),
    ),
    waited_ms=0,
    policy="fcfs",
)
STARTED = JobStarted(job_id="j", tenant="ada", attempt=1, master_port=4321)


def joined(node_id: str, incarnation: str = UUID, **fields: Any) -> NodeJoined:
    return NodeJoined.model_validate(
        {
            "node_id": node_id,
            "incarnation": incarnation,
            "executor_id": "e",
            "backend": "agent",
            "gpu_type": "a100",
            "gpus": 2,
            "cpus": 8,
            "mem_gib": 64,
            "generation": 1,
            "labels": {"berth.address": f"{node_id}.example"},
            **fields,
        }
    )


class History:
    """A lane; each call of `add` is one record, and returns the nodes with new orders."""

    def __init__(self, *events: Event) -> None:
        self.state = AgentPool(partition=1)
        self.seq = 0
        self.writer = "w1"
        for event in events:
            self.add(event)

    def add(self, *events: Event) -> set[str]:
        self.seq += 1
        nodes = set[str]()
        for index, event in enumerate(events):
            nodes |= evolve(self.state, Fact(event, "placement", 1, self.seq, index, 1000))
        end_record(self.state, self.seq, len(events), self.writer)
        return nodes


def running() -> History:
    """Return a lane with a gang of three that has started: worker 0 on n2, 1 and 2 on n1."""
    return History(POOL, joined("n1"), joined("n2"), ENQUEUED, PLACED, STARTED)


def allocation(rank: int) -> str:
    """Return the id of a worker of `running`: its placement is record 5."""
    return f"1/5/0/{rank}"


def hello(**fields: Any) -> Hello:
    return Hello.model_validate(
        {
            "node_id": "n1",
            "version": "1",
            "incarnation": {"generation": 1, "uuid": UUID},
            "boot_id": "boot",
            "pid_namespace": "4026531836",
            "hardware": "hw",
            "applied": {},
            "lapsed": False,
            "reports_from": 1,
            **fields,
        }
    )
