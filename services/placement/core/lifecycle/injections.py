"""Faults that operators inject: allowed by the pool alone, and always ended."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.state import Pool
from shared.contracts.injections import (
    EndCause,
    EndInjection,
    FaultInjected,
    InjectFault,
    InjectionEnded,
)
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

SETTING = "allow_injection"


def inject(pool: Pool, message: InjectFault, item: Input, now: int) -> Iterator[Decision]:
    """Answer the command: inject the fault, instead of one that the node has."""
    node_id = message.node_id
    if (refusal := refusal_of(pool, message)) is not None:
        yield refuse_command(item, node_id, *refusal)
        return
    if node_id in pool.injections:
        yield end(pool, node_id, "replaced", item.id)
    injected = FaultInjected(
        node_id=node_id,
        fault=message.fault,
        factor=message.factor,
        until=now + round(message.for_s * 1000),
        reason=message.reason,
    )
    yield item.decision(injected)
    yield accept_command(item, node_id)


def refusal_of(pool: Pool, message: InjectFault) -> tuple[str, str] | None:
    """Return reason and detail of a refusal; None if the injection is allowed."""
    node = pool.board.nodes.get(message.node_id)
    if pool.settings is None or not pool.settings.allow_injection:
        rule = f"an administrator sets it by `berth pools set {pool.name} {SETTING}=true`"
        return "injection_not_allowed", f"{SETTING} of pool {pool.name}: false; {rule}"
    if node is None or node.lost_at is not None:
        return "unknown_node", f"no node {message.node_id} in pool {pool.name}"
    if message.fault == "link" and node.backend != "virtual":
        detail = f"fault: 'link'; slow, stop or flap is allowed on a node of backend {node.backend}"
        return "fault_not_possible", detail
    return None


def end_by_command(pool: Pool, message: EndInjection, item: Input) -> Iterator[Decision]:
    """Answer the command; a node without an injected fault has nothing to end."""
    node_id = message.node_id
    is_injected = node_id in pool.injections
    if is_injected:
        yield end(pool, node_id, "ended", item.id, message.reason)
    elif not is_alive(pool, node_id):
        detail = f"no node {node_id} in pool {pool.name}"
        yield refuse_command(item, node_id, "unknown_node", detail)
        return
    yield accept_command(item, node_id, duplicate=not is_injected)


def end_due(pool: Pool, now: int) -> Iterator[Decision]:
    """End the injections that are over, not allowed any more, or on a lost node."""
    for node_id, injected in list(pool.injections.items()):
        if (cause := cause_of_end(pool, injected, now)) is not None:
            yield end(pool, node_id, cause)


def cause_of_end(pool: Pool, injected: FaultInjected, now: int) -> EndCause | None:
    if not is_alive(pool, injected.node_id):
        return "node_lost"
    if pool.settings is None or not pool.settings.allow_injection:
        return "not_allowed"
    return "over" if injected.until <= now else None


def end(pool: Pool, node_id: str, cause: EndCause, by: str = "", reason: str = "") -> Decision:
    fault = pool.injections[node_id].fault
    return Decision(InjectionEnded(node_id=node_id, fault=fault, cause=cause, reason=reason), by)


def due_at(pool: Pool) -> int | None:
    """Return when the next injection ends."""
    ends = (
        0 if cause_of_end(pool, injected, 0) is not None else injected.until
        for injected in pool.injections.values()
    )
    return min(ends, default=None)


def is_alive(pool: Pool, node_id: str) -> bool:
    node = pool.board.nodes.get(node_id)
    return node is not None and node.lost_at is None
