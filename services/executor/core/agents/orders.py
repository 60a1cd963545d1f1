"""The orders of one node: a pure function of the fold, so every executor gives the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.executor.core.agents.state import AgentNode, AgentPool, AgentWorker, Place
from shared.contracts.agents import MAX_ORDERS, Order, OrderKind, StepState


class OrderList(NamedTuple):
    """Orders by place; no order at or below `through` follows."""

    orders: list[Order]
    through: Place


def poll_wait_s(asked_s: float, session_id: str) -> float:
    """Return how long a poll waits: half of what the agent asks for up to all of it, by session.

    Polls of agents that connected together would otherwise end together, again and again.
    """
    share = int(session_id[:8], 16) / 0xFFFFFFFF
    return asked_s * (1 + share) / 2


def orders(state: AgentPool, node_id: str, after: Place) -> OrderList:
    """Return the orders of a node after that place, the oldest `MAX_ORDERS` of them."""
    node = state.nodes.get(node_id)
    if node is None:
        return OrderList([], max(state.through, after))
    new = sorted(
        (order for order in _orders(state, node, after) if Place.of(order.position) > after),
        key=lambda order: Place.of(order.position),
    )
    if len(new) <= MAX_ORDERS:
        return OrderList(new, max(state.through, after))
    return OrderList(new[:MAX_ORDERS], Place.of(new[MAX_ORDERS - 1].position))


def confirmations(
    state: AgentPool, node_id: str, applied: Place, held: tuple[StepState, ...]
) -> list[Order]:
    """Return the orders that follow a hello: the agent answers each with a report of its state.

    `confirm` names the workers up to `applied`; `forget` those that it holds and the ledger
    released so long ago that the order is not remembered.
    """
    node = state.nodes.get(node_id)
    if node is None:
        return []
    known = [
        _order("confirm", worker.placed, worker.incarnation, worker.allocation_id)
        for worker in node.workers.values()
        if worker.placed <= applied
    ]
    remembered = {released.allocation_id for released in node.released}
    dead = (step.allocation_id for step in held if step.phase == "dead")
    gone = [name for name in dead if name not in node.workers and name not in remembered]
    return [
        *known,
        *(_order("forget", applied, node.incarnation, allocation_id) for allocation_id in gone),
    ]


def _orders(state: AgentPool, node: AgentNode, after: Place) -> Iterator[Order]:
    if node.lost is None:
        yield _order("joined", node.joined, node.incarnation)
    elif node.fenced:
        yield _order("fence", node.lost, node.incarnation)
    if (at := state.terms_due_at(node)) is not None:
        terms = {"terms": state.agent_terms()}
        yield _order("terms", at, node.incarnation).model_copy(update=terms)
    for worker in node.workers.values():
        yield from _worker_orders(worker, after)
    for released in node.released:
        yield _order("forget", released.at, released.incarnation, released.allocation_id)


def _worker_orders(worker: AgentWorker, after: Place) -> Iterator[Order]:
    """A stop replaces what the node has not noted yet: such a worker never starts."""
    name, incarnation = worker.allocation_id, worker.incarnation
    if worker.stopped is not None:
        yield _order("stop", worker.stopped, incarnation, name)
        return
    if worker.placed > after:
        prepare = _order("prepare", worker.placed, incarnation, name)
        yield prepare.model_copy(update={"launch": worker.launch})
    if worker.started is not None:
        go = _order("go", worker.started, incarnation, name)
        yield go.model_copy(update={"master_port": worker.master_port})


def _order(kind: OrderKind, at: Place, incarnation: str, allocation_id: str = "") -> Order:
    return Order(
        kind=kind, position=at.position, incarnation=incarnation, allocation_id=allocation_id
    )
