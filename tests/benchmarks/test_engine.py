"""Goals of `berth bench engine` are computed from its figures, and its page has them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.engine import row_of
from benchmarks.parts.engine.goals import goals_of
from benchmarks.parts.engine.load import ServicePhase
from benchmarks.parts.engine.page import write_files
from benchmarks.parts.engine.waits import quantiles, wait_ratios
from shared.contracts.llm import LlmRequestQueued, LlmRequestStarted


def phase(many: int, few: int) -> ServicePhase:
    served = ServicePhase()
    served.add("many", many, many // 2)
    served.add("few", few, few // 2)
    served.end()
    served.wall_s = 10.0
    return served


def a_result(gap: int = 100, ratio: float = 1.0) -> dict[str, Any]:
    result: dict[str, Any] = {
        "slots": 4,
        "rounds": 1,
        "phase_s": 10.0,
        "cores": 2,
        "fcfs": row_of([phase(900, 300)], [1.0]),
        "berth": row_of([phase(600 + gap, 600)], [ratio, ratio]),
    }
    return {**result, "goals": goals_of(result)}


def test_a_gap_is_the_largest_difference_while_both_wait() -> None:
    served = phase(50, 20)
    served.add("few", 500, 250)
    assert (served.max_gap, served.service) == (50, {"many": 50, "few": 20})
    assert row_of([served, phase(10, 0)], [])["max_gap"] == 30


@pytest.mark.parametrize(("gap", "ratio", "unmet"), [(100, 1.0, 1), (800, 1.0, 1), (100, 3.0, 2)])
def test_goals_say_whether_they_are_met(gap: int, ratio: float, unmet: int) -> None:
    goals = a_result(gap, ratio)["goals"]
    assert sum(text.startswith("not met: ") for text in goals.values()) == unmet
    assert len(goals) == 4


def test_estimated_waits_are_compared_by_phase() -> None:
    def queued(name: str, wait_s: float) -> LlmRequestQueued:
        return LlmRequestQueued(
            request_id=name,
            tenant="many",
            endpoint="m",
            prompt_tokens=1,
            max_output_tokens=1,
            user="berth",
            wait_s=wait_s,
        )

    def started(name: str, waited_ms: int) -> LlmRequestStarted:
        return LlmRequestStarted(request_id=name, tenant="many", waited_ms=waited_ms)

    events = [queued("a", 1.0), queued("b", 9.0), started("a", 2000), started("b", 100)]
    assert wait_ratios(events) == {"berth": [0.5]}
    assert quantiles([3.0, 1.0, 2.0]) == {"requests": 3, "p10": 1.0, "p50": 2.0, "p90": 3.0}
    assert quantiles([])["p50"] == 0.0


def test_the_page_has_a_row_for_each_discipline(tmp_path: Path) -> None:
    write_files(tmp_path, a_result())
    page = (tmp_path / "engine.md").read_text()
    assert page.count("| fcfs |") == page.count("| berth |") == 1
    assert "keep 24 and 8 requests open" in page.replace("\n", " ")
