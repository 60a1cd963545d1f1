from __future__ import annotations

from services.placement.core.pool.shape import Shape, Slot, shape_of
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import Avoid, place
from services.placement.core.round.slot_search import Failures, SlotSearch
from tests.services.placement.core.lane import job, lane


def shape(gpus: float, workers: int = 1) -> Shape:
    return shape_of(job("x", gpus, workers).spec)


def test_a_gang_that_needs_no_less_than_one_that_did_not_fit_is_not_tried() -> None:
    tried: list[Shape] = []

    def count(trial: Trial, shape: Shape, avoid: Avoid) -> list[Slot]:
        tried.append(shape)
        return place(trial, shape, avoid)

    with Trial(lane("a", "b").state.board) as trial:
        search = SlotSearch(trial, count)
        assert len(search.place(shape(5), ())) == 1
        assert not search.has_room(shape(6, 2), ()) and len(tried) == 1, "too few are free"
        assert search.place(shape(5, 2), ()) == [] and len(tried) == 2
        assert search.place(shape(5, 2), ()) == [] and len(tried) == 2
        assert search.has_room(shape(8), ()) and len(tried) == 3
        assert len(trial.log) == 1


def test_a_shape_that_needs_no_less_than_a_failed_one_fails_too() -> None:
    failures = Failures()
    failures.add(shape(4, 2), ())
    assert failures.covers(shape(4, 2), ()) and failures.covers(shape(8, 2), ())
    assert not failures.covers(shape(2, 2), ()) and not failures.covers(shape(4, 2), ("a",))
