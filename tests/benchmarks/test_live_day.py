"""A day is played on a small stack, and a real process resumes; no time decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import live_day
from benchmarks.live_day import LiveDayOptions, day_of, run


@pytest.mark.stack
@pytest.mark.parts
async def test_a_day_ends_and_a_real_process_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    options = LiveDayOptions(
        trace="synthetic", day=0, longest_h=2, time_scale=3600, out=str(tmp_path)
    )
    result = cast("dict[str, Any]", await run(options, lambda line: None))
    jobs = result["settings"]["jobs"]
    assert all(figures["jobs_ended"] in (jobs, [jobs, jobs]) for figures in result["runs"].values())
    assert result["violations"] == []
    process = result["process"]
    assert process["is_resumed"] and process["stopped_by"] == "outranked", process
    assert result["latency"]["handover_wall_ms"] > 0
    assert json.loads((tmp_path / "live_day.json").read_text()) == result
    assert "| live | " in (tmp_path / "preemption.md").read_text()


def test_without_the_shared_trace_a_synthetic_day_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_day, "is_shared", lambda name: False)
    day = day_of(LiveDayOptions())
    assert (day.trace, day.number) == ("synthetic", 0) and day.jobs
    with pytest.raises(ValueError, match="trace: no_such_trace: no such file"):
        day_of(LiveDayOptions(trace="no_such_trace"))


@pytest.mark.parametrize("name", ["load", "longest_h", "time_scale"])
def test_what_must_be_above_zero_is_refused_by_name(name: str) -> None:
    options: dict[str, Any] = {name: 0.0}
    with pytest.raises(ValueError, match=f"{name}: 0.0, must be above 0"):
        day_of(LiveDayOptions(**options))
