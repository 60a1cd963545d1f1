"""`berth why-slow` ends with the plan that is due next."""

from __future__ import annotations

from typing import Any, get_args

from cli.text.expected_plans import LEVELS, REASONS, expected_lines
from cli.text.times import clock
from shared.contracts.mitigation import DeclinedReason, LevelName, MitigationExpected


def stated(at: int, **changes: Any) -> dict[str, Any]:
    data = {
        "level": "migrate",
        "due_at": 360_000,
        "lost_s": 12.4,
        "due_lost_s": 120.0,
        "rule": "break even",
        "declined": [{"level": "restart", "reason": "not_offered"}],
        **changes,
    }
    return {"type": "mitigation.expected.v1", "at": at, "data": data}


def test_the_newest_statement_counts() -> None:
    lines = list(expected_lines([stated(1000, level="validate"), stated(60_000)]))
    assert lines == [
        f"next plan: a migration off its slow nodes, due at {clock(360_000)}, once 120 s are lost "
        f"(12 s at {clock(60_000)}); break even",
        "  not a restart from its checkpoint: Berth does not offer it here",
    ]


def test_none_may_be_due() -> None:
    none = MitigationExpected(job_id="j1", attempt=1, level="nothing")
    data = none.model_dump(mode="json", exclude_defaults=True)
    lines = list(expected_lines([{"type": MitigationExpected.TYPE, "at": 1, "data": data}]))
    assert lines == ["next plan: none is due in the next hours"]
    assert list(expected_lines([])) == []


def test_each_level_and_reason_has_words() -> None:
    assert set(LEVELS) == set(get_args(LevelName)) - {"nothing"}
    assert set(REASONS) == set(get_args(DeclinedReason))
