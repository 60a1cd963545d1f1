"""Places order the orders of a lane."""

from __future__ import annotations

from services.executor.core.agents.state import Place
from tests.services.executor.core.agents.history import running


def test_orders_of_one_event_have_places_of_their_own_before_the_next_event() -> None:
    places = [
        Place.of_event(1, 0),
        Place.of_event(1, 0, 63),
        Place.of_event(1, 1),
        Place.of_event(2, 0),
    ]
    assert places == sorted(places) and len(set(places)) == 4


def test_a_place_is_a_position_on_the_wire() -> None:
    assert Place.of(Place.of_event(7, 2, 1).position) == Place.of_event(7, 2, 1)


def test_workers_of_a_job_are_those_of_the_attempt() -> None:
    state = running().state
    assert [worker.launch.rank for worker in state.workers_of("j", 1)] == [0, 1, 2]
    assert state.workers_of("j", 2) == [] == state.workers_of("ghost", 1)
