"""The instance of a round requires the head of the queue if it fits."""

from __future__ import annotations

from dataclasses import replace

from services.placement.core.solver.export import require_first
from tests.services.placement.core.solver.rounds import contended, exported


def test_the_first_job_that_fits_must_start() -> None:
    instance = exported(contended("x"))
    assert [request.job_id for request in instance.requests] == ["a", "b", "c"]
    assert [request.must_start for request in instance.requests] == [True, False, False]
    assert instance.requests[0].value > instance.requests[1].value


def test_the_first_job_need_not_start_if_greedy_does_not_start_it() -> None:
    instance = exported(contended("x"))
    requests = tuple(replace(request, must_start=False) for request in instance.requests)
    assert require_first(requests, instance.greedy)[0].must_start
    (start,) = instance.greedy.starts
    without = replace(instance.greedy, starts=(replace(start, request=1),))
    assert require_first(requests, without) == requests
