"""Registration and loss of own nodes, and the workers on them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from services.executor.core.virtual.effects import Effect, SendReport
from services.executor.core.virtual.inventory import InventoryNode
from services.executor.core.virtual.state import ExecutorState
from services.executor.core.virtual.stopping import stop
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import NodeLeaving, NodeRegistered, NodeTermsReported, WorkerStopped
from shared.contracts.terms import fold_terms
from shared.ledger.decider import Fact


def configure(state: ExecutorState, pool: PoolConfigured) -> list[Effect]:
    """Apply the pool's settings; register nodes whose backend is allowed now."""
    state.time_scale = pool.time_scale
    state.backends = frozenset(pool.backends)
    if state.terms is None:
        state.lease_s = pool.lease_s
    away = state.usurped | state.rejoining
    absent = [
        name for name in state.nodes if name not in state.own_incarnations and name not in away
    ]
    return _register(state, absent) if state.base else []


def resume(state: ExecutorState, pool: ExecutorState) -> None:
    """Take over a restored state: no worker of an earlier process lives in this one."""
    state.own_incarnations, state.base, state.use = {}, "", {}
    state.time_scale, state.backends = pool.time_scale, pool.backends
    if state.terms is None:
        state.lease_s = pool.lease_s
    for worker in list(state.workers.values()):
        state.vacate(worker)
        if worker.released:
            state.drop(worker)


def take_over(state: ExecutorState, base: str) -> list[Effect]:
    """Begin to act: the fold has reached the end, and no worker of an earlier incarnation lives.

    The nodes join anew; then the workers are reported stopped, and their jobs wait again.
    """
    state.base, state.rejoins, state.use, state.own_incarnations = base, 0, {}, {}
    state.usurped.clear()
    state.rejoining.clear()
    ends: list[Effect] = []
    for worker in state.workers.values():
        state.vacate(worker)
        worker.last_report = WorkerStopped(allocation_id=worker.allocation_id, job_id=worker.job_id)
        ends.append(SendReport(worker.last_report))
    return [*_register(state, state.nodes), *ends]


def rejoin(state: ExecutorState) -> list[Effect]:
    """Stop all workers and join anew, as the lease of this executor is in doubt."""
    return _rejoin(state, list(state.own_incarnations))


def register_idle(state: ExecutorState) -> list[Effect]:
    """Register rejoining nodes without living workers.

    Placement takes a new incarnation as the end of all workers of the old one.
    """
    idle = state.rejoining - {worker.node_id for worker in state.living_workers()}
    state.rejoining -= idle
    return _register(state, sorted(idle)) if idle else []


def _rejoin(state: ExecutorState, node_ids: list[str]) -> list[Effect]:
    for name in node_ids:
        del state.own_incarnations[name]
        state.rejoining.add(name)
    workers = [worker for worker in state.living_workers() if worker.node_id in node_ids]
    return [*stop(workers), *register_idle(state)]


def leave(state: ExecutorState) -> list[Effect]:
    """Report the nodes as leaving, then stop the workers: placement requeues each stopped job."""
    rejoining = {name: state.joined[name] for name in state.rejoining if name in state.joined}
    effects: list[Effect] = [
        SendReport(NodeLeaving(node_id=name, incarnation=incarnation))
        for name, incarnation in sorted((rejoining | state.own_incarnations).items())
    ]
    state.own_incarnations, state.base = {}, ""
    state.rejoining.clear()
    return [*effects, *stop(state.living_workers())]


def register_again(state: ExecutorState) -> list[Effect]:
    """Report again the nodes that have not joined yet; a repeated registration is harmless."""
    late = [
        name
        for name, incarnation in state.own_incarnations.items()
        if state.joined.get(name) != incarnation
    ]
    return [SendReport(_registration(state, state.nodes[name])) for name in late]


def on_terms(state: ExecutorState, fact: Fact, pool: PoolConfigured) -> list[Effect]:
    """Work under new terms of placement's ledger at once: no deadline is noted anywhere else."""
    old, state.terms = state.terms, fold_terms(state.terms, pool, fact.seq, fact.index)
    state.lease_s = pool.lease_s
    if old is None or old.in_executor == state.terms.in_executor:
        return []
    return [_terms_applied(state, node_id) for node_id in state.own_incarnations]


def on_joined(state: ExecutorState, e: NodeJoined) -> list[Effect]:
    """Note the join of an own node; one that overtook the own registration is replaced again."""
    if e.node_id not in state.nodes:
        return []
    state.joined[e.node_id] = e.incarnation
    known = state.generations.get(e.node_id, 0)
    state.generations[e.node_id] = max(known, e.generation)
    if state.own_incarnations.get(e.node_id) == e.incarnation:
        # A placement that knows no terms would reject the record that reports them.
        is_current = state.terms is None or e.terms_id in ("", state.terms.in_executor.terms_id)
        return [] if is_current else [_terms_applied(state, e.node_id)]
    is_overtaken = e.node_id in state.own_incarnations and e.generation >= known
    return _register(state, [e.node_id]) if is_overtaken else []


def _terms_applied(state: ExecutorState, node_id: str) -> SendReport:
    terms_id = state.terms.in_executor.terms_id if state.terms else ""
    incarnation = state.own_incarnations[node_id]
    report = NodeTermsReported(node_id=node_id, incarnation=incarnation, terms_id=terms_id)
    return SendReport(report)


def on_lost(state: ExecutorState, e: NodeLost) -> list[Effect]:
    """Handle the loss of a node's present incarnation; older ones were given up on purpose.

    The executor that replaced this one may be lost as well: a late registration of a dead process
    suffices to replace a living one. Then this executor takes the node back.
    """
    if state.joined.get(e.node_id) == e.incarnation:
        del state.joined[e.node_id]
        if state.base and e.node_id in state.usurped and e.reason != "replaced":
            state.usurped.discard(e.node_id)
            return _register(state, [e.node_id])
    if state.own_incarnations.get(e.node_id) != e.incarnation:
        return []
    if e.reason != "replaced":
        return _rejoin(state, [e.node_id])
    del state.own_incarnations[e.node_id]
    state.usurped.add(e.node_id)
    # Its GPUs belong to the other executor already.
    return stop([w for w in state.living_workers() if w.node_id == e.node_id])


def _register(state: ExecutorState, node_ids: Iterable[str]) -> list[Effect]:
    effects: list[Effect] = []
    incarnation = f"{state.base}.{state.rejoins}"
    state.rejoins += 1
    for node in state.own_nodes(node_ids):
        if node.backend in state.backends:
            state.own_incarnations[node.node_id] = incarnation
            state.generations[node.node_id] = state.generations.get(node.node_id, 0) + 1
            effects.append(SendReport(_registration(state, node)))
    return effects


def _registration(state: ExecutorState, node: InventoryNode) -> NodeRegistered:
    """Return the registration of a node whose workers end with this process.

    To placement each start of the process is a reboot of the same machine.
    """
    incarnation = state.own_incarnations[node.node_id]
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
        generation=state.generations[node.node_id],
        boot_id=state.base,
        pid_namespace=state.base,
        hardware=hashlib.sha256(node.node_id.encode()).hexdigest()[:32],
        terms_id=state.terms.in_executor.terms_id if state.terms else "",
    )
