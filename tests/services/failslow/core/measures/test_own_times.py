"""Own times of iterations of training are those that are compared."""

from __future__ import annotations

import pytest

from services.failslow.core.measures.own_times import LEAST_S, OwnWork, own_times, own_work
from shared.contracts.reports import IterationTimes


def times(**columns: tuple[object, ...]) -> IterationTimes:
    return IterationTimes.model_validate(
        {"job_id": "j", "allocation_id": "0/1/0/0", "node_id": "n", "rank": 0, **columns}
    )


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"iteration_s": (4.0, 5.0)}, (4.0, 5.0)),
        ({"iteration_s": (4.0, 5.0), "own_s": (1.0, 2.0)}, (1.0, 2.0)),
        ({"iteration_s": (4.0, 5.0), "own_s": (None, 2.0)}, (2.0,)),
        ({"iteration_s": (4.0, 90.0, 5.0), "kinds": ("train", "evaluation", "train")}, (4.0, 5.0)),
        (
            {"iteration_s": (4.0, 90.0), "own_s": (1.0, 9.0), "kinds": ("train", "checkpoint")},
            (1.0,),
        ),
        ({"iteration_s": ()}, ()),
        ({"iteration_s": (4.0,), "own_s": (3.0,), "delay_s": (1.0,)}, (2.0,)),
        ({"iteration_s": (4.0,), "own_s": (3.0,), "delay_s": (3.5,)}, (LEAST_S,)),
        ({"iteration_s": (4.0, 5.0), "own_s": (None, 3.0), "delay_s": (1.0, None)}, (3.0,)),
        ({"iteration_s": (4.0,), "delay_s": (1.0,)}, (4.0,)),
    ],
)
def test_own_times(columns: dict[str, tuple[object, ...]], expected: tuple[float, ...]) -> None:
    assert own_times(times(**columns)) == expected


def test_a_report_is_its_median_the_wait_for_a_processor_and_an_error() -> None:
    own = own_work(times(iteration_s=(9.0,) * 3, own_s=(2.0, 1.0, 3.0), delay_s=(0.5,) * 3))
    assert own is not None
    assert (own.net_s, own.delay_s) == (1.5, 0.5)
    assert own.error == pytest.approx(1.2533 * 1.4826 / 3**0.5 / 1.5)


def test_equal_iterations_have_no_error_and_none_say_nothing() -> None:
    assert own_work(times(iteration_s=(2.0, 2.0))) == OwnWork(2.0, 0.0, 0.0, False)
    assert own_work(times(iteration_s=(9.0,), kinds=("evaluation",))) is None
