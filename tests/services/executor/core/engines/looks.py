"""A lane of a pool of Slurm with two nodes, and looks at an engine made by hand."""

from __future__ import annotations

from typing import Any

from services.executor.core.agents.state import AgentPool
from services.executor.core.engines.contract import (
    EngineJob,
    EngineNode,
    EnginePhase,
    EngineState,
    GangProgress,
)
from services.executor.core.engines.gangs import EngineGang, Identity, gangs_of
from services.executor.core.engines.memory import Memory
from services.executor.core.engines.reconcile import Decided, Look, reconcile
from shared.contracts.base import Event
from shared.contracts.failures import Failure
from shared.contracts.pools import PoolConfigured
from tests.services.executor.core.agents.history import ENQUEUED, PLACED, STARTED, History, joined

INSTALLATION, POOL = "here", "gpu"
CONFIGURED = PoolConfigured(pool=POOL, partition=1, backends=("slurm",))
IDENTITY = Identity(INSTALLATION, POOL, "1/5/0").text


def engine_joined(node_id: str, **fields: Any) -> Event:
    return joined(node_id, backend="slurm", **fields)


class EngineHistory(History):
    """A lane whose nodes are those of Slurm."""

    def __init__(self, *events: Event) -> None:
        super().__init__()
        self.state = AgentPool(1, "slurm")
        for event in events:
            self.add(event)


def placed_history(*more: Event) -> EngineHistory:
    """Return a gang that is placed: worker 0 on n2, workers 1 and 2 on n1."""
    nodes = (engine_joined("n1"), engine_joined("n2"))
    return EngineHistory(CONFIGURED, *nodes, ENQUEUED, PLACED, *more)


def started_history(*more: Event) -> EngineHistory:
    return placed_history(STARTED, *more)


def gang_of(history: EngineHistory) -> EngineGang:
    [gang] = gangs_of(history.state, INSTALLATION, POOL).values()
    return gang


def engine_node(node_id: str, **fields: Any) -> EngineNode:
    values = {"gpus": 2, "gpu_type": "a100", "cpus": 8, "mem_gib": 64, "address": node_id}
    return EngineNode(node_id, **{**values, **fields})


def engine_job(
    phase: EnginePhase = EnginePhase.RUNNING, identity: str = IDENTITY, **fields: Any
) -> EngineJob:
    values = {"ref": "17", "owner": "Slurm job 17 of ada", "nodes": ("n1", "n2")}
    return EngineJob(identity=identity, phase=phase, **{**values, **fields})


def observed(
    *jobs: EngineJob, progress: GangProgress | None = None, **nodes: EngineNode
) -> EngineState:
    known = {"n1": engine_node("n1"), "n2": engine_node("n2"), **nodes}
    return EngineState(known, jobs, {IDENTITY: progress or GangProgress()})


def no_refusal(gang: EngineGang) -> Failure | None:
    return None


def decide(
    history: EngineHistory,
    observation: EngineState,
    memory: Memory | None = None,
    now_s: float = 100.0,
    acting: frozenset[str] = frozenset(),
    ledger_ms: int = 1000,
) -> Decided:
    return reconcile(
        Look(
            state=history.state,
            installation=INSTALLATION,
            pool=POOL,
            observation=observation,
            memory=Memory() if memory is None else memory,
            now_s=now_s,
            ledger_ms=ledger_ms,
            pending_s=20.0,
            refusal_of=no_refusal,
            acting=acting,
        )
    )
