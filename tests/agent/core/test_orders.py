"""Orders are carried out once, in order, and of the present incarnation alone."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.orders import decide, is_after
from berth_agent.messages import Order, Position
from shared.contracts.agents import OrderKind

OWN, OTHER = "a" * 32, "b" * 32
KINDS = ["prepare", "go", "stop", "confirm", "forget", "terms", "fence", "joined", "inject"]
POSITIONS = st.builds(Position, seq=st.integers(0, 5), index=st.integers(0, 5))
ORDERS = st.builds(
    Order,
    kind=st.sampled_from(KINDS),
    position=POSITIONS,
    incarnation=st.sampled_from([OWN, OTHER]),
    allocation_id=st.just("0/1/0/0"),
)


def test_every_kind_is_here() -> None:
    assert list(get_args(OrderKind)) == KINDS


@given(ORDERS, POSITIONS, st.booleans(), st.booleans())
def test_a_worker_starts_only_by_a_new_order_of_this_incarnation_under_a_lease(
    order: Order, applied: Position, may_run: bool, is_held: bool
) -> None:
    decision = decide(order, OWN, applied, may_run=may_run, is_held=is_held)
    if order.kind in ("prepare", "go") and decision == "carry_out":
        assert order.incarnation == OWN and may_run and is_after(order.position, applied)
    if order.kind in ("fence", "joined", "terms") and decision == "carry_out":
        assert order.incarnation == OWN and is_after(order.position, applied)


@given(ORDERS, POSITIONS, st.booleans())
def test_a_stop_of_a_held_worker_is_always_carried_out(
    order: Order, applied: Position, may_run: bool
) -> None:
    if order.kind == "stop":
        assert decide(order, OWN, applied, may_run=may_run, is_held=True) == "carry_out"


@given(ORDERS, POSITIONS, st.booleans())
def test_only_workers_of_this_incarnation_are_reported_as_unknown(
    order: Order, applied: Position, may_run: bool
) -> None:
    """A worker of another one may live on another machine that has this node's name."""
    decision = decide(order, OWN, applied, may_run=may_run, is_held=False)
    if order.incarnation == OTHER:
        assert decision == "ignore"
    elif order.kind in ("stop", "confirm"):
        assert decision == "answer_stopped"


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("kind", ["prepare", "go", "terms", "fence", "joined", "inject"])
def test_another_incarnation_starts_and_changes_nothing(kind: str, is_held: bool) -> None:
    """[R5]"""
    position = Position(seq=9, index=0)
    order = Order(kind=kind, position=position, incarnation=OTHER, allocation_id="0/1/0/0")  # type: ignore[arg-type]
    assert decide(order, OWN, Position(), may_run=True, is_held=is_held) == "ignore"


@pytest.mark.parametrize(
    ("kind", "seq", "may_run", "is_held", "expected"),
    [
        ("prepare", 1, True, False, "answer_stopped"),
        ("prepare", 1, True, True, "ignore"),
        ("prepare", 2, True, False, "carry_out"),
        ("prepare", 2, False, False, "ignore"),
        ("go", 2, True, True, "carry_out"),
        ("go", 2, True, False, "answer_stopped"),
        ("go", 1, True, True, "ignore"),
        ("go", 2, False, True, "ignore"),
        ("confirm", 1, False, True, "answer_state"),
        ("confirm", 1, False, False, "answer_stopped"),
        ("forget", 1, False, True, "carry_out"),
        ("forget", 2, True, False, "ignore"),
        ("fence", 1, True, False, "ignore"),
        ("fence", 2, False, False, "carry_out"),
    ],
)
def test_each_order(kind: str, seq: int, may_run: bool, is_held: bool, expected: str) -> None:
    values = {"kind": kind, "position": {"seq": seq, "index": 0}, "incarnation": OWN}
    order = Order.from_json({**values, "allocation_id": "0/1/0/0"})
    applied = Position(seq=1, index=0)
    assert decide(order, OWN, applied, may_run=may_run, is_held=is_held) == expected
