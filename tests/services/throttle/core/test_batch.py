from __future__ import annotations

import pytest

from services.throttle.core.batch import fits
from services.throttle.core.disciplines.request import ServedRequest


def request(prompt: int, most: int, made: int = 0) -> ServedRequest:
    return ServedRequest("r", "a", prompt, most, made_tokens=made)


@pytest.mark.parametrize(
    ("running", "candidate", "batch_tokens", "result"),
    [
        ([], request(60, 40), 100, True),
        ([], request(60, 41), 100, False),
        # The short one ends before the long one is at its longest: 10 + 10 + 2 x 5, then 10 + 100.
        ([request(10, 100)], request(10, 5), 110, True),
        ([request(10, 100)], request(10, 5), 109, False),
        ([request(10, 100, made=50)], request(10, 100), 10 + 50 + 10 + 2 * 50, True),
        ([request(10, 100, made=50)], request(10, 100), 10 + 50 + 10 + 2 * 50 - 1, False),
    ],
)
def test_a_batch_fits_up_to_its_largest_moment(
    running: list[ServedRequest], candidate: ServedRequest, batch_tokens: int, result: bool
) -> None:
    assert fits(running, candidate, batch_tokens) is result
