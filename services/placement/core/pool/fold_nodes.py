"""Folds of nodes and of the pool's settings."""

from __future__ import annotations

from services.placement.core.pool.node import Machine, Node, NotedSilence
from services.placement.core.pool.queue_order import rebuild_queue
from services.placement.core.pool.schedule import Schedule, Shadow
from services.placement.core.pool.state import Pool
from shared.contracts.gang_needs import GPU, kind_of
from shared.contracts.injections import FaultInjected, InjectionEnded
from shared.contracts.node_problems import GPU_FAULT, NodeProblemNoted
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
from shared.contracts.pools import PoolConfigured
from shared.contracts.terms import IN_EXECUTOR, fold_terms
from shared.ledger.decider import Fact

GONE_KEPT = 4096
"""Lost nodes with an agent whose generations are known each; executors keep fewer, so that the
generations that they hand out are never below placement's floor."""
CORDONS_KEPT = 4096
"""Cordons by operators of nodes that are forgotten: the nodes may return, and stay cordoned."""
PAST_TERMS = 16
"""Terms of which a node that joins may name one."""


def configure(pool: Pool, event: PoolConfigured, fact: Fact) -> None:
    """Take over new settings: queue, hold reasons and indexes may all be different.

    What another scheduler allotted, or this one before the pool had none, holds no longer.

    A node may use new terms from now on, and older ones until it says that it does not.
    """
    pool.loss.settle(fact.at, pool.loss_share)
    if pool.settings is not None and pool.settings.scheduler != event.scheduler:
        pool.schedule = Schedule(number=pool.schedule.number)
    if pool.settings is not None and pool.settings.scheduler_shadow != event.scheduler_shadow:
        pool.shadow = Shadow(number=pool.shadow.number)
    pool.settings = event
    terms = fold_terms(pool.terms[-1] if pool.terms else None, event, fact.seq, fact.index)
    if terms not in pool.terms[-1:]:
        pool.terms = [*pool.terms[1 - PAST_TERMS :], terms]
    for node in pool.board.nodes.values():
        present = terms.of(node.backend)
        node.terms.setdefault(present.terms_id, present.stop_after_s)
    pool.touch(fact.at)
    pool.mark_unreported()
    rebuild_queue(pool)
    for node in pool.board.nodes.values():
        update_index(pool, node)


def join(pool: Pool, event: NodeJoined, fact: Fact) -> None:
    """Add a node, or its new incarnation, with all of its capacity free but unusable GPUs."""
    unusable = {gpu for gpu in event.unusable_gpus if gpu < event.gpus}
    usable = event.gpus - len(unusable)
    kind = kind_of(event.gpu_type, usable, event.cpus, event.mem_gib, event.labels)
    node = pool.board.nodes[event.node_id] = Node(
        node_id=event.node_id,
        incarnation=event.incarnation,
        backend=event.backend,
        kind=kind,
        labels=dict(event.labels),
        free=[0 if gpu in unusable else GPU for gpu in range(event.gpus)],
        whole=usable,
        cpu_free=kind.cpu_milli,
        mem_free=kind.mem_mib,
        rack=event.labels.get("rack", event.rack),
        machine=Machine.of(event),
        terms=terms_at_join(pool, event),
    )
    pool.generations[event.node_id] = event.generation
    pool.held_back.pop(event.node_id, None)
    pool.gone.pop(event.node_id, None)
    pool.board.order_gpus(event.node_id)
    update_index(pool, node)
    pool.touch(fact.at)
    pool.mark_unreported()


def terms_at_join(pool: Pool, event: NodeJoined) -> dict[str, float | None]:
    """Return the terms that a node which joins may use: those that it names, and all since.

    Terms that the pool does not know any more might be any, so its workers count as kept until
    it reports other ones.
    """
    known = [terms.of(event.backend) for terms in pool.terms]
    named = [index for index, terms in enumerate(known) if terms.terms_id == event.terms_id]
    if event.terms_id == "":
        named = [len(known) - 1]
    older: dict[str, float | None] = {} if named else {event.terms_id: None}
    since = known[max(named[0], 0) :] if named else known[-1:]
    return {**older, **{terms.terms_id: terms.stop_after_s for terms in since}}


def lose(pool: Pool, event: NodeLost, fact: Fact) -> None:
    """Take a lost node out of use; it stays known while jobs have allocations on it.

    In ledgers of older versions a node was lost before its silence proved anything.
    """
    node = pool.board.nodes[event.node_id]
    node.lost_at = fact.at
    is_silent = event.reason == "silent"
    is_proved = is_silent and round(event.silent_s * 1000) >= pool.lost_after_ms(node)
    node.is_over = node.is_over or is_proved or event.powered_off
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
        if node.backend not in IN_EXECUTOR:
            forget_oldest(pool, node.node_id)


def forget_oldest(pool: Pool, node_id: str) -> None:
    """Note that a node is gone, and forget the one that is gone longest if they are too many.

    Names that are not known begin above the generations of all that were forgotten, so no old
    registration of one is ever newer than what has joined.
    """
    pool.gone[node_id] = None
    if len(pool.gone) > GONE_KEPT:
        oldest = next(iter(pool.gone))
        del pool.gone[oldest]
        pool.generation_floor = max(pool.generation_floor, pool.generations.pop(oldest))
        forget_cordon(pool, oldest)


def forget_cordon(pool: Pool, node_id: str) -> None:
    """End a cordon that ends with the next join; keep an operator's, but not without bound.

    Of nodes that are forgotten the latest `CORDONS_KEPT` cordons are kept, in the order in which
    their nodes were forgotten.
    """
    if node_id in pool.leaving:
        pool.leaving.discard(node_id)
        del pool.cordons[node_id]
        pool.cordoned_for.pop(node_id, None)
        pool.fault_boots.pop(node_id, None)
    elif node_id in pool.cordons:
        pool.cordons[node_id] = pool.cordons.pop(node_id)
        forgotten = [name for name in pool.cordons if name not in pool.generations]
        for name in forgotten[:-CORDONS_KEPT]:
            del pool.cordons[name]
            pool.cordoned_for.pop(name, None)
            pool.fault_boots.pop(name, None)


def cordon(pool: Pool, event: NodeCordoned, fact: Fact) -> None:
    pool.cordons[event.node_id] = event.draining
    if event.until_joined:
        pool.leaving.add(event.node_id)
    else:
        pool.leaving.discard(event.node_id)
    if event.fault_ids:
        pool.cordoned_for[event.node_id] = event.fault_ids
    else:
        pool.cordoned_for.pop(event.node_id, None)
    if GPU_FAULT not in event.fault_ids:
        pool.fault_boots.pop(event.node_id, None)
    elif (node := pool.board.nodes.get(event.node_id)) is not None:
        pool.fault_boots.setdefault(event.node_id, node.machine.boot_id)
    reindex(pool, event.node_id, fact.at)


def uncordon(pool: Pool, event: NodeUncordoned, fact: Fact) -> None:
    pool.cordons.pop(event.node_id, None)
    pool.cordoned_for.pop(event.node_id, None)
    pool.fault_boots.pop(event.node_id, None)
    pool.leaving.discard(event.node_id)
    reindex(pool, event.node_id, fact.at)


def note_health(pool: Pool, event: NodeHealthNoted, fact: Fact) -> None:
    pool.board.suspect(
        event.node_id, event.fault_id, event.slowdown, event.until, event.gpu, event.tenant
    )


def note_problem(pool: Pool, event: NodeProblemNoted, fact: Fact) -> None:
    node = pool.board.nodes[event.node_id]
    others = node.problems - {event.problem}
    node.problems = others | {event.problem} if event.present else others
    reindex(pool, event.node_id, fact.at)


def inject(pool: Pool, event: FaultInjected, fact: Fact) -> None:
    pool.injections[event.node_id] = event


def end_injection(pool: Pool, event: InjectionEnded, fact: Fact) -> None:
    pool.injections.pop(event.node_id, None)


def hold_back(pool: Pool, event: NodeHeldBack, fact: Fact) -> None:
    pool.held_back[event.node_id] = event.registration


def suspect(pool: Pool, event: NodeSuspected, fact: Fact) -> None:
    node = pool.board.nodes[event.node_id]
    node.silence = NotedSilence(event.silent_ms, event.offset)
    update_index(pool, node)
    pool.mark_unreported()


def hear(pool: Pool, event: NodeHeard, fact: Fact) -> None:
    node = pool.board.nodes[event.node_id]
    node.silence = None
    update_index(pool, node)
    pool.touch(fact.at)
    pool.mark_unreported()


def apply_terms(pool: Pool, event: NodeTermsApplied, fact: Fact) -> None:
    """Drop the terms that are older than the applied ones; the report counts as a heartbeat."""
    node = pool.board.nodes[event.node_id]
    terms = list(node.terms)
    for older in terms[: terms.index(event.terms_id)]:
        del node.terms[older]
    node.silence = None
    update_index(pool, node)


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
    present = node.lost_at is None and node.silence is None and node.takes_work
    if allowed and present and node.node_id not in pool.cordons:
        pool.board.index(node)
    else:
        pool.board.unindex(node)
