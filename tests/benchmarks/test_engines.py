"""`berth bench engines`: an engine on a whole stack, the verdicts and the page of its figures."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import engines
from benchmarks.engines import run
from benchmarks.parts.engines.conformance import conformance_of
from benchmarks.parts.engines.options import ENGINES, EnginesOptions
from benchmarks.parts.engines.page import goals_of, render_page
from benchmarks.parts.engines.runs import Runs
from benchmarks.parts.engines.sites import missing
from shared.contracts.reports import LogLines

SMALL = EnginesOptions(starts=2, gangs=8, kills=1)
ROW = {
    "conformance": {"a gang ends": "pass", "a requeue": "not applicable: none is there"},
    "submit_to_running_p50_ms": 80.0,
    "submit_to_running_p99_ms": 90.0,
    "gangs_per_s": 9.5,
    "gangs_at_kills": 12,
    "recovered_after_kill": 12,
    "placed_again_after_kill": 0,
    "double_runs": 0,
    "lost_jobs": 0,
    "load_1m": 0.4,
}


def printed(rank: int, attempt: int, *lines: str, first: int = 0) -> LogLines:
    return LogLines(
        job_id="j", tenant="t", rank=rank, attempt=attempt, first_line=first, lines=lines
    )


def noted(*outputs: LogLines) -> Runs:
    runs = Runs()
    for output in outputs:
        runs.note(output)
    return runs


def test_a_gang_runs_once_its_last_worker_does() -> None:
    runs = noted(printed(0, 1, "begun 10.50"), printed(1, 1, "begun 10.75", "ended 11.00"))
    assert runs.running_s("j", 2) == 10.75
    assert runs.running_s("j", 3) is None


def test_a_line_that_is_relayed_again_is_no_second_run() -> None:
    line = printed(0, 1, "begun 10.50")
    assert noted(line, line).doubles() == 0


def test_a_worker_that_begins_twice_in_one_attempt_is_a_double_run() -> None:
    assert noted(printed(0, 1, "begun 10.50"), printed(0, 1, "begun 12.00")).doubles() == 1


def test_an_attempt_that_begins_before_the_last_one_ended_is_a_double_run() -> None:
    first, late = printed(0, 1, "begun 1.00", "ended 3.00"), printed(0, 2, "begun 4.00")
    assert noted(first, late).doubles() == 0
    assert noted(first, printed(0, 2, "begun 2.00")).doubles() == 1


def verdicts(**changed: object) -> list[bool]:
    goals = goals_of({"slurm": ROW | changed, "kubernetes": {"left_out": "no binaries"}})
    return [words.startswith("met: ") for words in goals.values()]


def test_each_goal_is_missed_by_its_own_figure() -> None:
    assert verdicts() == [True] * 4
    failed = ROW["conformance"] | {"a stop": "fail"}  # type: ignore[operator]
    assert verdicts(conformance=failed) == [False, True, True, True]
    assert verdicts(recovered_after_kill=11) == [True, False, True, True]
    assert verdicts(double_runs=1) == [True, True, False, True]
    assert verdicts(double_runs=None) == [True, True, False, True], "no engine knows"
    assert verdicts(lost_jobs=1) == [True, True, True, False]
    assert verdicts(gangs_at_kills=0, recovered_after_kill=0)[1] is False, "no kill met a gang"


def test_without_an_engine_no_goal_is_met() -> None:
    assert all(words.startswith("not met") for words in goals_of({}).values())


def test_the_page_has_every_engine_that_ran_and_the_reason_of_each_other() -> None:
    rows = {"slurm": ROW, "virtual": ROW | {"double_runs": None}, "agent": {"left_out": "why not"}}
    settings = engines.settings_of(SMALL)
    page = render_page({"engines": rows, "goals": goals_of(rows), "settings": settings})
    assert "| figure | virtual | slurm |\n" in page
    assert "| double runs | no program runs | 0 |\n" in page
    assert "`agent` is left out: why not." in page
    assert "`kubernetes` is left out: not measured yet." in page
    assert "| not applicable | 1 | 1 |\n" in page


async def test_options_that_cannot_be_are_errors() -> None:
    for options, words in (
        (EnginesOptions(only="pbs"), "only=pbs: must be one of"),
        (EnginesOptions(kills=0), "kills: 0; 1 or more is allowed"),
    ):
        with pytest.raises(ValueError, match=words):
            await run(options, lambda line: None)


async def test_an_engine_that_is_not_there_is_left_out_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"engines": {"virtual": ROW}, "settings": engines.settings_of(EnginesOptions())}
    (tmp_path / "engines.json").write_text(json.dumps(rows))
    monkeypatch.setattr(engines, "missing", lambda engine: f"{engine} is missing")
    options = EnginesOptions(only="slurm", out=str(tmp_path))
    result: Any = await run(options, lambda line: None)
    assert result["engines"] == {"virtual": ROW, "slurm": {"left_out": "slurm is missing"}}
    assert json.loads((tmp_path / "engines.json").read_text()) == result
    with pytest.raises(ValueError, match="is of a run with other settings"):
        await run(EnginesOptions(only="slurm", kills=9, out=str(tmp_path)), lambda line: None)


@pytest.mark.stack
@pytest.mark.parts
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(name, marks=[pytest.mark.long] if name == "ray" else [])
        for name in ENGINES
        if name != "kubernetes"
    ],
)
def test_an_engine_is_measured_on_a_whole_stack(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite has its own tests, which are run elsewhere."""
    if reason := missing(engine):
        pytest.skip(reason)

    async def passes(engine: str) -> dict[str, str]:
        return {"a case": "pass"}

    monkeypatch.setattr(engines, conformance_of.__name__, passes)
    options = EnginesOptions(only=engine, starts=2, gangs=8, kills=1)
    result: Any = asyncio.run(run(options, lambda line: None))
    row = result["engines"][engine]
    assert row["measured_starts"] == 2 and row["submit_to_running_p50_ms"] > 0
    assert row["gangs_per_s"] > 0 and row["gangs_at_kills"] > 0
    assert (row["double_runs"], row["lost_jobs"]) in ((0, 0), (None, 0))
    assert row["recovered_after_kill"] == row["gangs_at_kills"]
