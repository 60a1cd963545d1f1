"""The answers of the API probe by kind, status and time."""

from __future__ import annotations

from typing import cast

from benchmarks.parts.chaos.api_probe import ApiProbe, ProbeAnswer
from benchmarks.parts.chaos.loaded_stack import LoadedStack


def probe() -> ApiProbe:
    answers = ApiProbe(cast("LoadedStack", None))
    answers.answers = [
        ProbeAnswer(1.0, "submit", 202),
        ProbeAnswer(2.0, "submit", 503),
        ProbeAnswer(2.5, "read", 200),
        ProbeAnswer(3.0, "submit", 503),
        ProbeAnswer(4.0, "submit", 202),
    ]
    return answers


def test_the_first_answer_is_the_earliest_of_its_kind_and_status_after_a_time() -> None:
    assert probe().first_s("submit", 202, 1.0) == 3.0
    assert probe().first_s("submit", 503, 0.5) == 1.5
    assert probe().first_s("read", 503, 0.0) is None


def test_statuses_are_counted_after_the_begin_up_to_the_end() -> None:
    assert probe().count_statuses("submit", 1.0, 4.0) == {"202": 1, "503": 2}
