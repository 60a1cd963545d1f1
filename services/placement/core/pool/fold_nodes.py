"""Folds of nodes and of the pool's settings."""

from __future__ import annotations

from services.placement.core.pool.board import Kind, Machine, Node, Suspicion
from services.placement.core.pool.shape import GPU, MIB
from services.placement.core.pool.state import Pool
from shared.contracts.access import PoolConfigured
from shared.contracts.nodes import (
    NodeCordoned,
    NodeHealthNoted,
    NodeHeard,
    NodeHeldBack,
    NodeJoined,
    NodeLost,
    NodeSuspected,
    NodeTermsApplied,
    NodeUncordoned,
)
from shared.contracts.terms import fold_terms
from shared.ledger.decider import Fact


def configure(pool: Pool, event: PoolConfigured, fact: Fact) -> None:
    """Take over new settings: queue, hold reasons and indexes may all be different.

    A node may use new terms from now on, and older ones until it says that it does not.
    """
    pool.settings = event
    pool.terms = fold_terms(pool.terms, event, fact.seq, fact.index)
    for node in pool.board.nodes.values():
        present = pool.terms.of(node.backend)
        node.terms.setdefault(present.terms_id, present.stop_after_s)
    pool.touch(fact.at)
    pool.mark_unreported()
    pool.rebuild_queue()
    for node in pool.board.nodes.values():
        update_index(pool, node)


def join(pool: Pool, event: NodeJoined, fact: Fact) -> None:
    """Add a node, or its new incarnation, with all of its capacity free but unusable GPUs."""
    labels = tuple(sorted(event.labels.items()))
    cpu, mem = round(event.cpus * 1000), round(event.mem_gib * MIB)
    unusable = {gpu for gpu in event.unusable_gpus if gpu < event.gpus}
    usable = event.gpus - len(unusable)
    node = pool.board.nodes[event.node_id] = Node(
        node_id=event.node_id,
        incarnation=event.incarnation,
        backend=event.backend,
        kind=Kind(event.gpu_type, usable, cpu, mem, labels),
        labels=dict(event.labels),
        free=[0 if gpu in unusable else GPU for gpu in range(event.gpus)],
        whole=usable,
        cpu_free=cpu,
        mem_free=mem,
        rack=event.labels.get("rack", event.rack),
        machine=Machine(event.generation, event.boot_id, event.pid_namespace, event.hardware),
        terms=terms_at_join(pool, event),
    )
    pool.generations[event.node_id] = event.generation
    pool.held_back.pop(event.node_id, None)
    update_index(pool, node)
    pool.touch(fact.at)
    pool.mark_unreported()


def terms_at_join(pool: Pool, event: NodeJoined) -> dict[str, float | None]:
    """Return the terms that a node which joins may use: those it names, and the present ones.

    Terms that the pool does not know any more might be any, so its workers count as kept until
    it reports other ones.
    """
    if pool.terms is None:
        return {}
    present = pool.terms.of(event.backend)
    terms: dict[str, float | None] = {}
    if event.terms_id not in ("", present.terms_id):
        terms[event.terms_id] = None
    return {**terms, present.terms_id: present.stop_after_s}


def lose(pool: Pool, event: NodeLost, fact: Fact) -> None:
    """Take a lost node out of use; it stays known while jobs have allocations on it."""
    node = pool.board.nodes[event.node_id]
    node.lost_at, node.loss = fact.at, event.reason
    update_index(pool, node)
    pool.lost[node.node_id] = fact.at
    pool.touch(fact.at)
    pool.mark_unreported()
    forget_if_gone(pool, node)


def forget_if_gone(pool: Pool, node: Node) -> None:
    """Remove a lost node whose last allocation is released."""
    if node.lost_at is not None and not node.jobs:
        del pool.board.nodes[node.node_id]
        del pool.lost[node.node_id]


def cordon(pool: Pool, event: NodeCordoned, fact: Fact) -> None:
    pool.cordons[event.node_id] = event.draining
    reindex(pool, event.node_id, fact.at)


def uncordon(pool: Pool, event: NodeUncordoned, fact: Fact) -> None:
    pool.cordons.pop(event.node_id, None)
    reindex(pool, event.node_id, fact.at)


def note_health(pool: Pool, event: NodeHealthNoted, fact: Fact) -> None:
    pool.board.suspect(event.node_id, event.fault_id, event.slowdown, event.until)


def hold_back(pool: Pool, event: NodeHeldBack, fact: Fact) -> None:
    pool.held_back[event.node_id] = event.registration


def suspect(pool: Pool, event: NodeSuspected, fact: Fact) -> None:
    node = pool.board.nodes[event.node_id]
    node.suspicion = Suspicion(event.silent_ms, event.offset)
    update_index(pool, node)
    pool.mark_unreported()


def hear(pool: Pool, event: NodeHeard, fact: Fact) -> None:
    node = pool.board.nodes[event.node_id]
    node.suspicion = None
    update_index(pool, node)
    pool.touch(fact.at)
    pool.mark_unreported()


def apply_terms(pool: Pool, event: NodeTermsApplied, fact: Fact) -> None:
    """Drop the terms that are older than the applied ones."""
    node = pool.board.nodes[event.node_id]
    terms = list(node.terms)
    for older in terms[: terms.index(event.terms_id)]:
        del node.terms[older]


def reindex(pool: Pool, node_id: str, at: int) -> None:
    """Update the indexes after a cordon was set or lifted."""
    node = pool.board.nodes.get(node_id)
    pool.touch(at)
    pool.mark_unreported()
    if node is not None:
        update_index(pool, node)


def update_index(pool: Pool, node: Node) -> None:
    """Index the node if something may start on it, else take it off the indexes."""
    allowed = pool.settings is None or node.backend in pool.settings.backends
    present = node.lost_at is None and node.suspicion is None
    if allowed and present and node.node_id not in pool.cordons:
        pool.board.index(node)
    else:
        pool.board.unindex(node)
