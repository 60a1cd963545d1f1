from __future__ import annotations

import pytest

from services.throttle.core.disciplines.seam import EngineLoad, Guard
from tests.services.throttle.core.disciplines.serving import BUSY, a_request


@pytest.mark.parametrize(
    ("held", "waiting", "is_overloaded"), [(900, 0, False), (901, 0, True), (0, 1, True)]
)
def test_an_engine_is_overloaded_when_requests_wait_or_its_batch_is_nearly_full(
    held: int, waiting: int, is_overloaded: bool
) -> None:
    assert EngineLoad(held, 1000, waiting).is_overloaded == is_overloaded


def test_a_guard_refuses_nothing_by_default() -> None:
    assert Guard().refusal(a_request(), BUSY, 0) is None
