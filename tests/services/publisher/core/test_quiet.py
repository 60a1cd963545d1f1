"""A lane's last event is published again well before retention removes it."""

from __future__ import annotations

import pytest

from services.publisher.core.quiet import SHARES, is_quiet
from shared.contracts.topics import DAY_MS, TOPICS

KEPT_MS = TOPICS["events"].retention_ms
NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("days", "quiet"), [(0, False), (7, False), (8, True), (29, True), (-1, False), (-40, True)]
)
def test_an_event_is_due_again_after_a_part_of_its_retention(days: int, quiet: bool) -> None:
    assert KEPT_MS == 30 * DAY_MS and SHARES > 1
    assert is_quiet(NOW_MS - days * DAY_MS, NOW_MS, KEPT_MS) == quiet
