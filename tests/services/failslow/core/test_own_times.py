"""Own times of iterations of training are those that are compared."""

from __future__ import annotations

import pytest

from services.failslow.core.own_times import own_times
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
    ],
)
def test_own_times(columns: dict[str, tuple[object, ...]], expected: tuple[float, ...]) -> None:
    assert own_times(times(**columns)) == expected
