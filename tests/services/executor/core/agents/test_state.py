"""Places order the orders of a lane."""

from __future__ import annotations

import pickle

from services.executor.core.agents.state import RELEASED_KEPT, OrderPosition
from tests.services.executor.core.agents.history import allocation, running
from tests.services.executor.core.agents.test_orders import released


def test_orders_of_one_event_have_places_of_their_own_before_the_next_event() -> None:
    places = [
        OrderPosition.of_event(1, 0),
        OrderPosition.of_event(1, 0, 63),
        OrderPosition.of_event(1, 1),
        OrderPosition.of_event(2, 0),
    ]
    assert places == sorted(places) and len(set(places)) == 4


def test_a_position_of_an_order_is_one_on_the_wire() -> None:
    assert OrderPosition.of(OrderPosition.of_event(7, 2, 1).position) == OrderPosition.of_event(
        7, 2, 1
    )


def test_a_snapshot_holds_the_whole_state() -> None:
    history = running()
    history.add(released(1))
    state = history.state
    read = pickle.loads(pickle.dumps(state))
    assert read == state
    kept = read.nodes["n1"].released
    assert [one.allocation_id for one in kept] == [allocation(1)]
    assert kept.maxlen == RELEASED_KEPT and kept[0].source.job_id == "j"
    worker = next(iter(read.nodes["n1"].workers.values()))
    assert worker is read.workers[worker.allocation_id], "what is one object stays one"


def test_the_writer_of_a_record_is_that_of_the_last_takeover_before_it() -> None:
    history = running()
    history.writer = "w2"
    history.add()
    history.add()
    state = history.state
    assert [state.writer_of(seq) for seq in (0, 1, 6, 7, 8)] == ["", "w1", "w1", "w2", "w2"]
    assert state.writers == [(1, "w1"), (7, "w2")]


def test_workers_of_a_job_are_those_of_the_attempt() -> None:
    state = running().state
    assert [worker.launch.rank for worker in state.workers_of("j", 1)] == [0, 1, 2]
    assert state.workers_of("j", 2) == [] == state.workers_of("ghost", 1)
