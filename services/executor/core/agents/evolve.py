"""Folds facts of the placement ledger; the result names the nodes that have new orders."""

from __future__ import annotations

from services.executor.core.agents.launch import launches
from services.executor.core.agents.state import (
    GONE_KEPT,
    LOST_KEPT,
    WRITERS_KEPT,
    AgentJob,
    AgentNode,
    AgentPool,
    AgentWorker,
    Capacity,
    NodeInjection,
    OrderPosition,
    Released,
)
from shared.contracts.admission import ArrayEnded
from shared.contracts.agents import ADDRESS_LABEL
from shared.contracts.array_programs import array_id_of, with_program
from shared.contracts.attempts import (
    AllocationReleased,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.injections import FaultInjected, InjectionEnded
from shared.contracts.node_problems import NodeProblemNoted
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import ArrayProgramNoted, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.series import series_of
from shared.contracts.terms import fold_terms
from shared.ledger.decider import Fact
from shared.ledger.folds import unknown_event

Stop = JobPreempted | JobMigrated | JobResized | JobStopRequested | JobStartFailed


def evolve(state: AgentPool, fact: Fact) -> frozenset[str]:
    """Fold a consumed fact and return the nodes that have new orders."""
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
        case NodeJoined() | NodeLost() | FaultInjected() | InjectionEnded() as e:
            return _on_node(state, fact, e)
        case PoolConfigured() as e:
            return _on_pool(state, fact, e)
        case NodeProblemNoted() as e:
            _on_problem(state, e)
        case event:
            _on_job(state, event)
    return frozenset()


def _on_job(state: AgentPool, event: Event) -> None:
    """Note what its workers run, which for jobs of an array may be recorded once for all."""
    match event:
        case JobEnqueued() as e:
            state.jobs[e.job_id] = _job_of(state, e)
        case JobSucceeded() | JobFailed() | JobCancelled() as e:
            state.jobs.pop(e.job_id, None)
        case ArrayProgramNoted() as e:
            state.programs[e.job_id] = e
        case ArrayEnded() as e:
            state.programs.pop(e.job_id, None)
        case _:
            raise unknown_event("placement", event)


def _job_of(state: AgentPool, e: JobEnqueued) -> AgentJob:
    program = state.programs.get(array_id_of(e.job_id, e.array_index))
    spec = with_program(e.spec, program.command, program.env) if program else e.spec
    return AgentJob(e.tenant, spec, e.array_index)


def end_record(state: AgentPool, seq: int, events: int, writer: str) -> None:
    """Note that a record of so many events is folded as a whole."""
    if not state.writers or state.writers[-1][1] != writer:
        state.writers.append((seq, writer))
        del state.writers[:-WRITERS_KEPT]
    state.through = OrderPosition.of_event(seq, events)


def _on_placed(state: AgentPool, fact: Fact, e: JobPlaced) -> frozenset[str]:
    job = state.jobs.get(e.job_id)
    if job is None:
        return frozenset()
    nodes, series = set[str](), _series(state, e, job)
    for allocation, launch in launches(state, e, job):
        node = state.nodes.get(allocation.node_id)
        allocation_id = f"{fact.place}/{allocation.rank}"
        if node is None or allocation_id in state.workers:
            continue
        at = OrderPosition.of_event(fact.seq, fact.index, launch.local_rank)
        worker = AgentWorker(
            allocation_id, node.node_id, node.incarnation, launch, at, series=series
        )
        if job.spec.pods and allocation.rank < len(job.spec.pods):
            worker.pod = job.spec.pods[allocation.rank]
        state.workers[allocation_id] = node.workers[allocation_id] = worker
        state.of_job.setdefault(e.job_id, []).append(allocation_id)
        nodes.add(node.node_id)
    return frozenset(nodes)


def _series(state: AgentPool, e: JobPlaced, job: AgentJob) -> str:
    gang = [state.nodes.get(allocation.node_id) for allocation in e.allocations]
    gpu_types = (node.gpu_type for node in gang if node is not None)
    return series_of(e.tenant, job.spec, len(e.allocations), gpu_types)


def _on_started(state: AgentPool, fact: Fact, e: JobStarted) -> frozenset[str]:
    workers = state.workers_of(e.job_id, e.attempt)
    for worker in workers:
        worker.started = OrderPosition.of_event(fact.seq, fact.index, worker.launch.local_rank)
        worker.started_ms = fact.at
        worker.master_port = e.master_port
    return frozenset(worker.node_id for worker in workers)


def _on_stop(state: AgentPool, fact: Fact, e: Stop) -> frozenset[str]:
    """Note the stop of the workers; only the first stop of a worker counts."""
    workers = [w for w in state.workers_of(e.job_id, e.attempt) if w.stopped is None]
    for worker in workers:
        worker.stopped = OrderPosition.of_event(fact.seq, fact.index, worker.launch.local_rank)
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
    at = OrderPosition.of_event(fact.seq, fact.index)
    node.released.append(Released(at, e.allocation_id, worker.incarnation, worker.source))
    if node.lost is not None:
        state.lost.setdefault(node.node_id)
        _forget_lost(state)
        _note_gone(state, node)
    return frozenset((worker.node_id,))


def _on_node(
    state: AgentPool, fact: Fact, e: NodeJoined | NodeLost | FaultInjected | InjectionEnded
) -> frozenset[str]:
    match e:
        case NodeJoined():
            return _on_joined(state, fact, e)
        case NodeLost():
            return _on_lost(state, fact, e)
        case FaultInjected() | InjectionEnded():
            return _on_injection(state, fact, e)


def _on_joined(state: AgentPool, fact: Fact, e: NodeJoined) -> frozenset[str]:
    state.addresses[e.node_id] = e.labels.get(ADDRESS_LABEL, "127.0.0.1")
    if e.backend != state.backend:
        return frozenset()
    at = OrderPosition.of_event(fact.seq, fact.index)
    address = state.addresses[e.node_id]
    node = AgentNode(e.node_id, e.incarnation, e.generation, at, address, e.terms_id)
    node.gpu_type = e.gpu_type
    node.capacity = Capacity(e.gpu_type, e.gpus, e.cpus, e.mem_gib, e.unusable_gpus)
    if (old := state.nodes.get(e.node_id)) is not None:
        node.generation = max(node.generation, old.generation)
        node.workers, node.released = old.workers, old.released
    state.lost.pop(e.node_id, None)
    state.gone.pop(e.node_id, None)
    state.nodes[e.node_id] = node
    return frozenset((e.node_id,))


def _on_injection(
    state: AgentPool, fact: Fact, e: FaultInjected | InjectionEnded
) -> frozenset[str]:
    node = state.nodes.get(e.node_id)
    if node is None:
        return frozenset()
    injected = e if isinstance(e, FaultInjected) else None
    node.injection = NodeInjection(OrderPosition.of_event(fact.seq, fact.index), injected)
    return frozenset((e.node_id,))


def _on_problem(state: AgentPool, e: NodeProblemNoted) -> None:
    node = state.nodes.get(e.node_id)
    if node is not None and node.incarnation == e.incarnation:
        others = node.problems - {e.problem}
        node.problems = others | {e.problem} if e.present else others


def _on_lost(state: AgentPool, fact: Fact, e: NodeLost) -> frozenset[str]:
    node = state.nodes.get(e.node_id)
    if node is None or node.incarnation != e.incarnation:
        return frozenset()
    node.lost = OrderPosition.of_event(fact.seq, fact.index)
    node.fenced = node.fenced or e.reason != "left"
    state.lost.setdefault(e.node_id)
    _forget_lost(state)
    _note_gone(state, node)
    return frozenset((e.node_id,))


def _forget_lost(state: AgentPool) -> None:
    """Forget all but the generation of nodes that were lost long ago and hold no worker."""
    for node_id in list(state.lost)[:-LOST_KEPT]:
        node = state.nodes[node_id]
        if not node.workers:
            node.released.clear()
            state.addresses.pop(node_id, None)
            del state.lost[node_id]


def _note_gone(state: AgentPool, node: AgentNode) -> None:
    """Note that a lost node holds nothing, and forget the one that is gone longest.

    Its agent, if it comes back, has no newer generation than the floor: it is fenced, and begins
    above it.
    """
    if node.workers:
        return
    state.gone.setdefault(node.node_id)
    if len(state.gone) > GONE_KEPT:
        oldest = next(iter(state.gone))
        del state.gone[oldest]
        state.lost.pop(oldest, None)
        state.addresses.pop(oldest, None)
        forgotten = state.nodes.pop(oldest)
        state.generation_floor = max(state.generation_floor, forgotten.generation)


def _on_pool(state: AgentPool, fact: Fact, e: PoolConfigured) -> frozenset[str]:
    old = state.agent_terms()
    state.release, state.time_scale = e.release, e.time_scale
    state.terms = fold_terms(state.terms, e, fact.seq, fact.index)
    if state.terms.agent == old:
        return frozenset()
    state.terms_at = OrderPosition.of_event(fact.seq, fact.index)
    return frozenset(state.nodes)
