"""Folds facts of the placement ledger; the result names the nodes that have new orders."""

from __future__ import annotations

from services.executor.core.agents.launch import launches
from services.executor.core.agents.state import (
    AgentJob,
    AgentNode,
    AgentPool,
    AgentWorker,
    Place,
    Released,
)
from services.executor.core.inventory import ADDRESS_LABEL
from shared.contracts.access import PoolConfigured
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import (
    AllocationReleased,
    JobCancelled,
    JobEnqueued,
    JobFailed,
    JobMigrated,
    JobPlaced,
    JobPreempted,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.contracts.terms import fold_terms
from shared.ledger.decider import Fact

Stop = JobPreempted | JobMigrated | JobResized | JobStopRequested | JobStartFailed


def evolve(state: AgentPool, fact: Fact) -> frozenset[str]:
    """Fold a fact and return the nodes that have new orders; other types change nothing."""
    match fact.event:
        case JobPlaced() as e:
            return _on_placed(state, fact, e)
        case JobStarted() as e:
            return _on_started(state, fact, e)
        case (
            JobPreempted() | JobMigrated() | JobResized() | JobStopRequested() | JobStartFailed()
        ) as e:
            return _on_stop(state, fact, e)
        case AllocationReleased() as e:
            return _on_released(state, fact, e)
        case NodeJoined() as e:
            return _on_joined(state, fact, e)
        case NodeLost() as e:
            return _on_lost(state, fact, e)
        case PoolConfigured() as e:
            return _on_pool(state, fact, e)
        case JobEnqueued() as e:
            state.jobs[e.job_id] = AgentJob(e.tenant, e.spec, e.array_index)
        case JobSucceeded() | JobFailed() | JobCancelled() as e:
            state.jobs.pop(e.job_id, None)
        case _:
            pass
    return frozenset()


def end_record(state: AgentPool, seq: int, events: int) -> None:
    """Note that a record of so many events is folded as a whole."""
    state.through = Place.of_event(seq, events)


def _on_placed(state: AgentPool, fact: Fact, e: JobPlaced) -> frozenset[str]:
    job = state.jobs.get(e.job_id)
    if job is None:
        return frozenset()
    nodes = set[str]()
    for allocation, launch in launches(state, e, job):
        node = state.nodes.get(allocation.node_id)
        allocation_id = f"{fact.place}/{allocation.rank}"
        if node is None or allocation_id in state.workers:
            continue
        at = Place.of_event(fact.seq, fact.index, launch.local_rank)
        worker = AgentWorker(allocation_id, node.node_id, node.incarnation, launch, at)
        state.workers[allocation_id] = node.workers[allocation_id] = worker
        state.of_job.setdefault(e.job_id, []).append(allocation_id)
        nodes.add(node.node_id)
    return frozenset(nodes)


def _on_started(state: AgentPool, fact: Fact, e: JobStarted) -> frozenset[str]:
    workers = state.workers_of(e.job_id, e.attempt)
    for worker in workers:
        worker.started = Place.of_event(fact.seq, fact.index, worker.launch.local_rank)
        worker.master_port = e.master_port
    return frozenset(worker.node_id for worker in workers)


def _on_stop(state: AgentPool, fact: Fact, e: Stop) -> frozenset[str]:
    """The first stop counts: later ones ask for the same."""
    workers = [w for w in state.workers_of(e.job_id, e.attempt) if w.stopped is None]
    for worker in workers:
        worker.stopped = Place.of_event(fact.seq, fact.index, worker.launch.local_rank)
    return frozenset(worker.node_id for worker in workers)


def _on_released(state: AgentPool, fact: Fact, e: AllocationReleased) -> frozenset[str]:
    worker = state.workers.pop(e.allocation_id, None)
    if worker is None:
        return frozenset()
    rest = state.of_job[e.job_id]
    rest.remove(e.allocation_id)
    if not rest:
        del state.of_job[e.job_id]
    node = state.nodes[worker.node_id]
    node.workers.pop(e.allocation_id, None)
    at = Place.of_event(fact.seq, fact.index)
    node.released.append(Released(at, e.allocation_id, worker.incarnation, worker.source))
    return frozenset((worker.node_id,))


def _on_joined(state: AgentPool, fact: Fact, e: NodeJoined) -> frozenset[str]:
    state.addresses[e.node_id] = e.labels.get(ADDRESS_LABEL, "127.0.0.1")
    if e.backend != "agent":
        return frozenset()
    at = Place.of_event(fact.seq, fact.index)
    address = state.addresses[e.node_id]
    node = AgentNode(e.node_id, e.incarnation, e.generation, at, address, e.terms_id)
    if (old := state.nodes.get(e.node_id)) is not None:
        node.generation = max(node.generation, old.generation)
        node.workers, node.released = old.workers, old.released
    state.nodes[e.node_id] = node
    return frozenset((e.node_id,))


def _on_lost(state: AgentPool, fact: Fact, e: NodeLost) -> frozenset[str]:
    node = state.nodes.get(e.node_id)
    if node is None or node.incarnation != e.incarnation:
        return frozenset()
    node.lost = Place.of_event(fact.seq, fact.index)
    node.fenced = node.fenced or e.reason != "left"
    return frozenset((e.node_id,))


def _on_pool(state: AgentPool, fact: Fact, e: PoolConfigured) -> frozenset[str]:
    old = state.agent_terms()
    state.terms = fold_terms(state.terms, e, fact.seq, fact.index)
    if state.terms.agent == old:
        return frozenset()
    state.terms_at = Place.of_event(fact.seq, fact.index)
    return frozenset(state.nodes)
