from __future__ import annotations

import pytest

from services.access.core.lanes import lowest_free


@pytest.mark.parametrize(
    ("taken", "lanes", "lane"),
    [((), 2, 0), ((0, 2), 4, 1), ((1, 0), 3, 2), ((0, 1), 2, None), ((5,), 2, 0), ((), 0, None)],
)
def test_the_lowest_lane_that_is_not_taken_is_free(
    taken: tuple[int, ...], lanes: int, lane: int | None
) -> None:
    assert lowest_free(taken, lanes) == lane
