"""The orders that are carried out: those of this incarnation, in order, under an active lease."""

from __future__ import annotations

from typing import Literal

from berth_agent.messages import Order, Position

Decision = Literal["carry_out", "answer_stopped", "answer_state", "ignore"]
"""`answer_stopped`: the worker is unknown and never starts; `answer_state`: repeat its report."""


def is_after(position: Position, applied: Position) -> bool:
    return (position.seq, position.index) > (applied.seq, applied.index)


def decide(
    order: Order, incarnation: str, applied: Position, *, may_run: bool, is_held: bool
) -> Decision:
    """Return what to do with an order; `applied` is the position of the last one carried out.

    A stop of a worker that the agent holds is always carried out: it is safe whoever sends it, and
    however late. A worker of another incarnation that it does not hold may live on another machine
    with this node's name, so nothing is reported of it.
    """
    if not is_held and order.incarnation != incarnation:
        return "ignore"
    match order.kind:
        case "stop":
            return "carry_out" if is_held else "answer_stopped"
        case "confirm":
            return "answer_state" if is_held else "answer_stopped"
        case "forget":
            return "carry_out" if is_held else "ignore"
    if order.incarnation != incarnation:
        return "ignore"
    if not is_after(order.position, applied):
        never_starts = order.kind == "prepare" and not is_held
        return "answer_stopped" if never_starts else "ignore"
    if order.kind == "go" and not is_held:
        return "answer_stopped"
    if order.kind in ("prepare", "go"):
        return "carry_out" if may_run else "ignore"
    return "carry_out"
