"""An own node's coming and going, and what becomes of the workers on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.executor.core.effects import Effect, SendReport, WorkerEnded
from services.executor.core.inventory import InventoryNode
from services.executor.core.state import ExecutorState, Worker
from services.executor.core.stopping import stop
from shared.contracts.access import PoolConfigured
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.reports import NodeLeaving, NodeRegistered, WorkerExited, WorkerStopped

LOST_GRACE_S = 5.0
"""After a lost lease placement waits `lease_s` from its NodeLost; a stop must be over by then."""


def configure(lane: ExecutorState, pool: PoolConfigured) -> list[Effect]:
    """The pool as its people want it; nodes whose backend it begins to allow join now."""
    lane.time_scale = pool.time_scale
    lane.lease_s = pool.lease_s
    lane.backends = frozenset(pool.backends)
    away = lane.usurped | lane.rejoining
    absent = [name for name in lane.nodes if name not in lane.mine and name not in away]
    return _register(lane, absent) if lane.base else []


def resume(lane: ExecutorState, pool: ExecutorState) -> None:
    """A state from before this process began: whatever lived in it is somebody else's past."""
    lane.mine, lane.base, lane.use = {}, "", {}
    lane.time_scale, lane.lease_s, lane.backends = pool.time_scale, pool.lease_s, pool.backends
    for worker in list(lane.workers.values()):
        lane.vacate(worker)
        if worker.released:
            lane.drop(worker)


def take_over(lane: ExecutorState, base: str, ends: Mapping[str, WorkerEnded]) -> list[Effect]:
    """The fold has reached the end and no process of an earlier incarnation is left.

    Ends that the earlier one had noted are said before the nodes join anew, so that a job which
    was done stays done; what nobody knows the end of is stopped after it, and waits again.
    """
    lane.base, lane.rejoins, lane.use, lane.mine = base, 0, {}, {}
    lane.usurped.clear()
    lane.rejoining.clear()
    known: list[Effect] = []
    unknown: list[Effect] = []
    for worker in lane.workers.values():
        lane.vacate(worker)
        end = ends.get(worker.allocation_id)
        worker.last = _end(worker, end)
        (known if end else unknown).append(SendReport(worker.last))
    return [*known, *_register(lane, lane.nodes), *unknown]


def rejoin(lane: ExecutorState, at_most_s: float) -> list[Effect]:
    """The lease of this whole executor is in doubt: stop everything, join anew."""
    return _rejoin(lane, list(lane.mine), at_most_s)


def register_idle(lane: ExecutorState) -> list[Effect]:
    """Placement takes a new incarnation's word for it that nothing of the old one runs."""
    idle = lane.rejoining - {worker.node_id for worker in lane.living()}
    lane.rejoining -= idle
    return _register(lane, sorted(idle)) if idle else []


def _rejoin(lane: ExecutorState, node_ids: list[str], at_most_s: float) -> list[Effect]:
    for name in node_ids:
        del lane.mine[name]
        lane.rejoining.add(name)
    workers = [worker for worker in lane.living() if worker.node_id in node_ids]
    return [*stop(workers, at_most_s), *register_idle(lane)]


def leave(lane: ExecutorState, at_most_s: float) -> list[Effect]:
    """Say goodbye, then stop what runs: placement moves the jobs as soon as each is stopped."""
    here = {name: lane.joined[name] for name in lane.rejoining if name in lane.joined}
    effects: list[Effect] = [
        SendReport(NodeLeaving(node_id=name, incarnation=incarnation))
        for name, incarnation in sorted((here | lane.mine).items())
    ]
    lane.mine, lane.base = {}, ""
    lane.rejoining.clear()
    return [*effects, *stop(lane.living(), at_most_s)]


def register_again(lane: ExecutorState) -> list[Effect]:
    """Nodes whose join the ledger has not shown yet; saying it twice is harmless."""
    late = [name for name, mine in lane.mine.items() if lane.joined.get(name) != mine]
    return [SendReport(_registration(lane.nodes[name], lane.mine[name])) for name in late]


def on_joined(lane: ExecutorState, e: NodeJoined) -> None:
    if e.node_id in lane.nodes:
        lane.joined[e.node_id] = e.incarnation


def on_lost(lane: ExecutorState, e: NodeLost) -> list[Effect]:
    """Only the loss of the present incarnation matters; older ones were left behind on purpose.

    Who replaced us may be gone as well: a late word of a process that was dead already is enough
    to replace a living one. Then the node is ours again.
    """
    if lane.joined.get(e.node_id) == e.incarnation:
        del lane.joined[e.node_id]
        if lane.base and e.node_id in lane.usurped and e.reason != "replaced":
            lane.usurped.discard(e.node_id)
            return _register(lane, [e.node_id])
    if lane.mine.get(e.node_id) != e.incarnation:
        return []
    if e.reason != "replaced":
        return _rejoin(lane, [e.node_id], LOST_GRACE_S)
    del lane.mine[e.node_id]
    lane.usurped.add(e.node_id)
    # Its GPUs are the other's already.
    return stop([w for w in lane.living() if w.node_id == e.node_id], 0.0)


def _register(lane: ExecutorState, node_ids: Iterable[str]) -> list[Effect]:
    effects: list[Effect] = []
    incarnation = f"{lane.base}.{lane.rejoins}"
    lane.rejoins += 1
    for node in lane.owned(node_ids):
        if node.backend in lane.backends:
            lane.mine[node.node_id] = incarnation
            effects.append(SendReport(_registration(node, incarnation)))
    return effects


def _registration(node: InventoryNode, incarnation: str) -> NodeRegistered:
    return NodeRegistered(
        node_id=node.node_id,
        incarnation=incarnation,
        backend=node.backend,
        gpu_type=node.gpu_type,
        gpus=node.gpus,
        cpus=node.cpus,
        mem_gib=node.mem_gib,
        rack=node.rack,
        labels=dict(node.labels),
    )


def _end(worker: Worker, end: WorkerEnded | None) -> WorkerExited | WorkerStopped:
    if end is None or end.exit_code is None:
        return WorkerStopped(allocation_id=worker.allocation_id, job_id=worker.job_id)
    return WorkerExited(
        allocation_id=worker.allocation_id,
        job_id=worker.job_id,
        exit_code=end.exit_code,
        ran_ms=end.ran_ms,
    )
