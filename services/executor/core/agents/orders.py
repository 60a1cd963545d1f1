"""The orders of one node: a pure function of the fold, so every executor gives the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.executor.core.agents.state import AgentNode, AgentPool, AgentWorker, OrderPosition
from shared.contracts.agents import MAX_ORDERS, Order, OrderKind, StepState


class OrderList(NamedTuple):
    """Orders by position; no order at or below `through` follows."""

    orders: list[Order]
    through: OrderPosition


def poll_wait_s(wait_s: float, session_id: str) -> float:
    """Return how long a poll waits: from half of the requested time up to all of it, by session.

    Polls of agents that connected together would otherwise end together, again and again.
    """
    share = int(session_id[:8], 16) / 0xFFFFFFFF
    return wait_s * (1 + share) / 2


def orders(
    state: AgentPool, node_id: str, after: OrderPosition, most: int = MAX_ORDERS
) -> OrderList:
    """Return the orders of a node after that position, the oldest `most` of them."""
    node = state.nodes.get(node_id)
    if node is None:
        return OrderList([], max(state.through, after))
    new = sorted(_orders(state, node, after), key=lambda order: OrderPosition.of(order.position))
    if len(new) <= most:
        return OrderList(new, max(state.through, after))
    return OrderList(new[:most], OrderPosition.of(new[most - 1].position) if most else after)


def confirmations(
    state: AgentPool, node_id: str, applied: OrderPosition, held: tuple[StepState, ...]
) -> list[Order]:
    """Return the orders that follow a hello: the agent answers each with a report of its state.

    `confirm` names the workers up to `applied`; `forget` those that it holds and the ledger does
    not: it released them so long ago that the order is not remembered, or the agent died after it
    had noted the order, or another ledger placed them. The agent ends one that lives.
    """
    node = state.nodes.get(node_id)
    if node is None:
        return []
    known = [
        _order("confirm", worker.placed, worker.incarnation, worker.allocation_id)
        for worker in node.workers.values()
        if worker.placed <= applied
    ]
    coming = {released.allocation_id for released in node.released if released.at > applied}
    known_names = node.workers.keys() | coming
    gone = [
        step.allocation_id
        for step in held
        if step.allocation_id not in known_names and not state.may_lie_ahead(step.allocation_id)
    ]
    return [
        *known,
        *(_order("forget", applied, node.incarnation, allocation_id) for allocation_id in gone),
    ]


def _orders(state: AgentPool, node: AgentNode, after: OrderPosition) -> Iterator[Order]:
    """Yield the orders after that position; what a node has had costs nothing here.

    Each poll of each node comes here, and a node remembers hundreds of releases.
    """
    if node.lost is None:
        if node.joined > after:
            yield _order("joined", node.joined, node.incarnation)
    elif node.fenced and node.lost > after:
        yield _order("fence", node.lost, node.incarnation)
    if (at := state.terms_due_at(node)) is not None and at > after:
        terms = {"terms": state.agent_terms()}
        yield _order("terms", at, node.incarnation).model_copy(update=terms)
    if node.injection is not None and node.lost is None and node.injection.at > after:
        yield _order("inject", node.injection.at, node.incarnation)
    for worker in node.workers.values():
        yield from _worker_orders(worker, after)
    for released in reversed(node.released):
        if released.at <= after:
            return
        yield _order("forget", released.at, released.incarnation, released.allocation_id)


def _worker_orders(worker: AgentWorker, after: OrderPosition) -> Iterator[Order]:
    """Yield the worker's orders; a stop replaces those that the node has not noted yet."""
    name, incarnation = worker.allocation_id, worker.incarnation
    if worker.stopped is not None:
        if worker.stopped > after:
            yield _order("stop", worker.stopped, incarnation, name)
        return
    if worker.placed > after:
        prepare = _order("prepare", worker.placed, incarnation, name)
        yield prepare.model_copy(update={"launch": worker.launch})
    if worker.started is not None and worker.started > after:
        go = _order("go", worker.started, incarnation, name)
        yield go.model_copy(update={"master_port": worker.master_port})


def _order(kind: OrderKind, at: OrderPosition, incarnation: str, allocation_id: str = "") -> Order:
    return Order(
        kind=kind, position=at.position, incarnation=incarnation, allocation_id=allocation_id
    )
