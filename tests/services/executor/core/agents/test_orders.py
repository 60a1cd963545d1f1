"""Orders follow from the fold alone: after any place, in order, and for any executor the same."""

from __future__ import annotations

from typing import Any

import pytest

from services.executor.core.agents import orders as module
from services.executor.core.agents.orders import confirmations, orders, poll_wait_s
from services.executor.core.agents.state import OrderPosition
from shared.contracts.agents import Order, OrderKind, StepState
from shared.contracts.attempts import AllocationReleased, JobStopRequested
from shared.contracts.nodes import NodeLost
from tests.services.executor.core.agents.history import (
    ENQUEUED,
    PLACED,
    POOL,
    UUID,
    History,
    allocation,
    joined,
    running,
)

STOP = JobStopRequested(job_id="j", tenant="ada", attempt=1, reason="cancelled")


def kinds(listed: list[Order]) -> list[tuple[str, str]]:
    return [(order.kind, order.allocation_id) for order in listed]


def released(rank: int) -> AllocationReleased:
    return AllocationReleased(
        job_id="j",
        tenant="ada",
        attempt=1,
        allocation_id=allocation(rank),
        node_id="n1",
        reason="exited",
    )


def test_a_node_gets_its_own_orders_in_their_order() -> None:
    listed, through = orders(running().state, "n1", OrderPosition())
    assert kinds(listed) == [
        ("joined", ""),
        ("prepare", allocation(1)),
        ("prepare", allocation(2)),
        ("go", allocation(1)),
        ("go", allocation(2)),
    ]
    assert {order.incarnation for order in listed} == {UUID}
    assert listed[1].launch is not None and listed[3].master_port == 4321
    assert through == running().state.through


def test_every_place_divides_the_orders_without_loss_or_repetition() -> None:
    history = running()
    history.add(STOP, released(1))
    everything = orders(history.state, "n1", OrderPosition()).orders
    places = [OrderPosition.of(order.position) for order in everything]
    assert len(set(places)) == len(places)
    for index, place in enumerate(places[:-1]):
        assert orders(history.state, "n1", place).orders[-1] == everything[-1]
        rest = {order.kind for order in orders(history.state, "n1", place).orders}
        assert rest >= {order.kind for order in everything[index + 1 :]}


def test_a_poll_makes_no_order_that_the_node_has_had(monkeypatch: pytest.MonkeyPatch) -> None:
    history = running()
    history.add(released(1))
    history.add(released(2))
    made: list[str] = []
    make = module._order

    def note(kind: OrderKind, *rest: Any) -> Order:
        made.append(kind)
        return make(kind, *rest)

    monkeypatch.setattr(module, "_order", note)
    everything = orders(history.state, "n1", OrderPosition()).orders
    before_last = OrderPosition.of(everything[-2].position)
    made.clear()
    assert kinds(orders(history.state, "n1", before_last).orders) == [("forget", allocation(2))]
    assert made == ["forget"]


def test_nothing_follows_through() -> None:
    state = running().state
    _, through = orders(state, "n1", OrderPosition())
    assert orders(state, "n1", through) == ([], through)
    assert orders(state, "ghost", OrderPosition()) == ([], state.through)


def test_a_stop_replaces_a_start_that_the_node_has_not_noted() -> None:
    history = History(POOL, joined("n1"), joined("n2"), ENQUEUED, PLACED)
    noted = orders(history.state, "n1", OrderPosition()).through
    history.add(STOP)
    stops = [("stop", allocation(1)), ("stop", allocation(2))]
    assert kinds(orders(history.state, "n1", noted).orders) == stops
    assert kinds(orders(history.state, "n1", OrderPosition()).orders) == [("joined", ""), *stops]


def test_a_released_worker_is_forgotten() -> None:
    history = running()
    noted = history.state.through
    history.add(released(1))
    assert kinds(orders(history.state, "n1", noted).orders) == [("forget", allocation(1))]


@pytest.mark.parametrize(
    ("reason", "fenced"), [("silent", True), ("declared", True), ("left", False)]
)
def test_a_lost_incarnation_is_fenced_unless_it_left(reason: str, fenced: bool) -> None:
    history = running()
    noted = history.state.through
    history.add(NodeLost.model_validate({"node_id": "n1", "incarnation": UUID, "reason": reason}))
    listed = kinds(orders(history.state, "n1", noted).orders)
    assert listed == ([("fence", "")] if fenced else [])


def test_new_terms_are_ordered() -> None:
    history = running()
    noted = history.state.through
    history.add(POOL.model_copy(update={"stop_after_s": 60.0}))
    [order] = orders(history.state, "n1", noted).orders
    assert order.kind == "terms" and order.terms is not None and order.terms.stop_after_s == 60


@pytest.mark.parametrize("before", ["1.0", "forgotten"])
def test_a_node_that_joins_under_older_terms_gets_the_present_ones(before: str) -> None:
    """Terms changed between its registration and its NodeJoined."""
    history = History(POOL, POOL.model_copy(update={"stop_after_s": 60.0}))
    assert history.add(joined("n1", terms_id=before)) == {"n1"}
    first, second = orders(history.state, "n1", OrderPosition()).orders
    assert (first.kind, second.kind) == ("joined", "terms")
    assert second.terms is not None
    assert (second.terms.terms_id, second.terms.stop_after_s) == ("2.0", 60)
    assert kinds(orders(history.state, "n1", OrderPosition.of(first.position)).orders) == [
        ("terms", "")
    ]
    assert orders(history.state, "n1", OrderPosition.of(second.position)).orders == []


def test_terms_that_change_after_such_a_join_are_ordered_once_more() -> None:
    history = History(POOL, joined("n1", terms_id="0.9"))
    noted = orders(history.state, "n1", OrderPosition()).through
    history.add(POOL.model_copy(update={"stop_after_s": 60.0}))
    [order] = orders(history.state, "n1", noted).orders
    assert order.terms is not None and order.terms.terms_id == "3.0"


@pytest.mark.parametrize("present", ["", "1.0"])
def test_a_node_under_the_present_terms_gets_none(present: str) -> None:
    history = History(POOL, joined("n1", terms_id=present))
    assert kinds(orders(history.state, "n1", OrderPosition()).orders) == [("joined", "")]


def test_a_long_list_is_cut_and_goes_on() -> None:
    state = running().state
    everything = orders(state, "n1", OrderPosition()).orders
    listed, after = list[Order](), OrderPosition()
    while (answer := orders(state, "n1", after, 2)).orders:
        assert len(answer.orders) <= 2
        listed += answer.orders
        after = answer.through
    assert listed == everything
    assert orders(state, "n1", OrderPosition(1, 0), 0) == ([], OrderPosition(1, 0))


def test_after_a_hello_the_workers_up_to_applied_are_confirmed() -> None:
    history = History(POOL, joined("n1"), joined("n2"), ENQUEUED)
    before = history.state.through
    history.add(PLACED)
    assert confirmations(history.state, "n1", before, ()) == []
    confirmed = confirmations(history.state, "n1", history.state.through, ())
    assert kinds(confirmed) == [("confirm", allocation(1)), ("confirm", allocation(2))]


def test_workers_that_the_ledger_does_not_hold_are_forgotten() -> None:
    """It released them long ago, or they are of another pool, or of a ledger before a restore."""
    held = (
        StepState(allocation_id="1/2/0/0", phase="dead", exit_code=0),
        StepState(allocation_id="1/2/0/1", phase="running"),
        StepState(allocation_id="0/99/0/0", phase="running"),
        StepState(allocation_id="1/7/0/0", phase="running"),
        StepState(allocation_id="1/7/0/1", phase="dead", exit_code=0),
    )
    state = running().state
    assert state.through.seq == 6, "the fold has not reached the last two"
    assert kinds(confirmations(state, "n1", OrderPosition(3, 0), held)) == [
        ("forget", "1/2/0/0"),
        ("forget", "1/2/0/1"),
        ("forget", "0/99/0/0"),
    ]
    assert confirmations(state, "ghost", OrderPosition(3, 0), held) == []


def test_an_order_to_forget_that_an_agent_noted_before_it_died_is_repeated() -> None:
    history = running()
    noted = history.state.through
    history.add(released(1))
    held = (StepState(allocation_id=allocation(1), phase="dead", exit_code=0),)
    forget = ("forget", allocation(1))
    assert forget not in kinds(confirmations(history.state, "n1", noted, held))
    assert forget in kinds(confirmations(history.state, "n1", history.state.through, held))


def test_polls_of_sessions_wait_differently_and_never_longer_than_asked() -> None:
    assert poll_wait_s(20.0, "0" * 32) == 10.0
    assert poll_wait_s(20.0, "80000000" + "0" * 24) == pytest.approx(15.0)
    assert poll_wait_s(20.0, "f" * 32) == 20.0
    assert poll_wait_s(0.0, "f" * 32) == 0.0
