"""Points in time and durations as people read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from cli.errors import BadInput
from cli.text.times import DAY_MS, clock, field_text, label, parse_span_s, span


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0 s"),
        (1_240, "1.2 s"),
        (59_940, "59.9 s"),
        (60_000, "1 min 0 s"),
        (200_000, "3 min 20 s"),
        (3_600_000, "1 h 0 min"),
        (18_720_000, "5 h 12 min"),
        (-1, "-"),
        (None, "-"),
    ],
)
def test_a_duration_has_its_two_largest_units(ms: object, text: str) -> None:
    assert span(ms) == text


@pytest.mark.parametrize("at_ms", [None, 0, -5, "1700000000000", 1.5])
def test_what_is_no_time_is_a_dash(at_ms: object) -> None:
    assert clock(at_ms) == "-"


def test_a_time_has_its_date_once_it_is_older_than_a_day() -> None:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)  # noqa: TID251
    assert re.fullmatch(r"\d\d:\d\d:\d\d", clock(now_ms))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", clock(now_ms - 2 * DAY_MS))


@pytest.mark.parametrize(
    ("text", "span_s"), [("90s", 90), ("30m", 1800), ("1h", 3600), ("7d", 604800)]
)
def test_a_duration_has_a_number_and_a_unit(text: str, span_s: int) -> None:
    assert parse_span_s(text) == span_s


@pytest.mark.parametrize("text", ["", "h", "0h", "1", "1.5h", "-1h", "1w", "1h "])
def test_other_durations_are_refused_by_value_and_rule(text: str) -> None:
    with pytest.raises(BadInput, match="a whole number with s, m, h or d is allowed"):
        parse_span_s(text)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ended_at", 0, "-"),
        ("lost_after_ms", 90_000, "1 min 30 s"),
        ("lost_after_ms", None, "-"),
        ("used_milli", [0, 500], "0, 500"),
        ("gang", {"workers": 2, "gpus_per_worker": 1.0}, "workers 2, gpus_per_worker 1"),
        ("limits", {"ran_ms": 2_000}, "ran 2.0 s"),
        ("quotas", [{"pool": "a"}, {"pool": "b"}], "pool a; pool b"),
        ("command", ["sh", "-c", "\x1b[2J"], "sh, -c, ?[2J"),
        ("labels", {}, "-"),
    ],
)
def test_a_field_of_a_document_is_text(name: str, value: object, text: str) -> None:
    assert field_text(name, value) == text


def test_a_label_has_no_unit_that_its_value_has() -> None:
    names = ("lost_after_ms", "ran_ms", "gpu_ms", "gpu_milli", "joined_at")
    shown = ["lost after", "ran", "gpu time", "gpu_milli", "joined_at"]
    assert [label(name) for name in names] == shown
