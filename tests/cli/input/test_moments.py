"""Moments as the command line takes them."""

from __future__ import annotations

import pytest

from cli.errors import BadInput
from cli.input.moments import parse_moment_ms


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("2026-11-01", 1_793_491_200_000),
        ("2026-11-01T08:30", 1_793_521_800_000),
        ("2026-11-01T08:30+02:00", 1_793_514_600_000),
        ("90s", 910_000),
    ],
)
def test_a_moment_is_utc_or_before_the_end(text: str, moment_ms: int) -> None:
    assert parse_moment_ms("--from", text, 1_000_000) == moment_ms


def test_another_text_is_refused_with_both_forms() -> None:
    with pytest.raises(BadInput, match="--from: 'soon'; a moment such as"):
        parse_moment_ms("--from", "soon", 0)
