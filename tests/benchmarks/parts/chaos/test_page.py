"""The page of chaos results shows every figure, every violation and every goal."""

from __future__ import annotations

from benchmarks.parts.chaos.goals import GOALS, NOT_MEASURED, row
from benchmarks.parts.chaos.page import render_page

RUN = "2026-11-21T12:00:00Z"
END = {
    "jobs_acknowledged": 4000,
    "jobs_ended": 3999,
    "all_ended": False,
    "verify": "failed",
    "violations": ["read models equal the fold: jobs: j1 is missing"],
    "rules": ["a", "read models equal the fold"],
    "counts": {"records": 5, "events": 9},
}
TIMES = {"count": 33, "p50": 1.5, "p99": 3.2, "max": 3.3}
KILLS = {
    "kills": 33,
    "fewest_per_service": 3,
    "at_once": 1,
    "recovery_s": TIMES,
    "deciders_recovery_s": TIMES,
}
RESULT = {
    "runs": {
        RUN: {
            "command": "berth bench chaos --kills 3",
            "cores": 2,
            "load_1m": 1.5,
            "wall_s": 600,
            "settings": {},
            "end": END,
        }
    },
    "parts": {"kills": {**KILLS, "run": RUN}, "recovery": {**KILLS, "run": RUN}},
    "simulation": {
        "seeds": 200,
        "jobs": 5000,
        "deaths": 2700,
        "freezes": 1500,
        "accidents": 5000,
        "ignored": 7000,
        "virtual_h": 2.4,
        "wrong": [{"seed": 7, "what": []}],
        "sabotage": {"no reader rule": True, "no gap check": False},
    },
    "checks": {"tests.replay.test_replay": {"tests": 9, "failed": 1, "skipped": 2}},
}


def test_the_page_shows_figures_and_violations() -> None:
    text = render_page(RESULT, {})
    for phrase in (
        "33 kills, at least 3 of each service",
        "p99 3.2 s",
        "1 without an end",
        "verify **failed** (1 violations)",
        "jobs: j1 is missing",
        "1 seeds with violations (7)",
        "199 of 200 runs",
        "1 of 2 removed rules",
        "| no gap check | NOT DETECTED |",
        "6 of 9 passed, 2 skipped",
    ):
        assert phrase in text


def test_a_goal_without_results_is_shown_as_not_measured() -> None:
    empty: dict[str, dict[str, object]] = {"runs": {}, "parts": {}, "simulation": {}, "checks": {}}
    for goal in GOALS:
        assert row(goal, empty, {})[4] == NOT_MEASURED, goal.name


def test_services_of_an_earlier_release_are_named() -> None:
    old = {"growth_mib_per_h": {"executor-local": 1.6}, "run": RUN}
    text = render_page({**RESULT, "parts": {"other": old}}, {})
    note = "Of an earlier release, which had these services: `executor-local`."
    assert note in text and note not in render_page(RESULT, {})


def outcome(name: str, result: object, fuzz: object = None) -> tuple[str, str]:
    """Return result and what was not exercised of a goal."""
    goal = next(goal for goal in GOALS if goal.name == name)
    return row(goal, result, fuzz or {})[4:6]  # type: ignore[arg-type,return-value]


def test_a_run_that_lost_a_job_does_not_meet_its_goal() -> None:
    whole = {**END, "jobs_ended": 4000, "verify": "ok", "violations": []}
    kept = {**RESULT, "runs": {RUN: {**RESULT["runs"][RUN], "end": whole}}}  # type: ignore[index]
    left = "3 of 100 kills of a service; 4,000 of 100,000 jobs"
    assert outcome("G1", RESULT) == ("**not met**", left)
    assert outcome("G1", kept) == ("met", left)
    assert outcome("G2", RESULT)[0] == "**not met**" and outcome("G2", kept) == ("met", "")


def test_recovery_is_judged_by_its_quantiles_and_its_load() -> None:
    assert outcome("G3", RESULT) == ("met", "a quiet machine")
    late = {**KILLS, "recovery_s": {**TIMES, "p99": 12.0}, "run": RUN}
    slow = {**RESULT, "parts": {"kills": {**late, "at_once": 3}, "recovery": late}}
    assert outcome("G3", slow)[0] == "**not met**"
    assert outcome("G24", slow) == ("**not met**", "")
    assert outcome("G24", RESULT) == ("met", "1 of 3 kills at once")


def test_failed_skipped_and_absent_tests_are_named() -> None:
    assert outcome("G13", RESULT) == ("**not met**", "test_upgrade; 2 of test_replay")
    skipped = {"tests.e2e.test_observed": {"tests": 2, "failed": 0, "skipped": 2}}
    assert outcome("G19", {**RESULT, "checks": skipped})[0] == "**not met**"
    assert outcome("G12", RESULT) == ("**not met**", "")
    assert outcome("G11", RESULT) == ("**not met**", "200 of 100,000 seeds")


def test_a_disk_that_refused_nothing_is_not_taken_for_a_refusal() -> None:
    disk = {
        "first_503_after_s": 3.0,
        "good_again_after_s": 9.0,
        "jobs_acknowledged": 9,
        "verify": "ok",
        "full_s": 20.0,
        "all_ended": True,
    }
    parts = {"disk_kafka": disk, "disk_postgres": {**disk, "first_503_after_s": None}}
    result = {**RESULT, "parts": parts}
    assert outcome("G10", result) == ("met", "postgres refused nothing within 20 s")
    nothing = {**RESULT, "parts": {"disk_postgres": {**disk, "first_503_after_s": None}}}
    assert outcome("G10", nothing)[0] == "**not met**"
    lost = {**RESULT, "parts": {"disk_kafka": {**disk, "all_ended": False}}}
    assert outcome("G10", lost)[0] == "**not met**"
    late = {**RESULT, "parts": {"disk_kafka": {**disk, "first_503_after_s": 6.0}}}
    assert outcome("G10", late) == ("**not met**", "postgres's disk")


SLICE = {
    "at_s": [10.0 * n for n in range(241)],
    "mib": {"gateway": [100.0] * 241, "broker": [1.0 * n for n in range(241)]},
    "lines_of_errors": 0,
    "verify": "ok",
    "all_ended": True,
    "per_s": 20.0,
}


def test_a_soak_is_judged_by_its_slices() -> None:
    def of(*slices: object) -> tuple[str, str]:
        return outcome("G14", {**RESULT, "others": {"soak": {"slices": slices}}})

    assert of(*[SLICE] * 12) == ("met", "")
    assert of(*[SLICE] * 6) == ("met", "240 of 480 min")
    assert of(*[SLICE] * 6, {**SLICE, "all_ended": False})[0] == "**not met**"
    grown = {**SLICE, "mib": {"gateway": [100.0 + n / 36 for n in range(241)]}}
    assert of(*[SLICE] * 6, grown, grown)[0] == "**not met**"
    assert of({**SLICE, "per_s": 5.0})[1].endswith(
        "5 of 20 jobs/s; 1 of 3 slices, over which growth is measured"
    )


def test_the_flood_of_a_tenant_is_judged_by_the_jobs_of_another() -> None:
    figures = {
        "malformed": 10**6,
        "dead_letters": 25_500,
        "good_jobs": 240,
        "placed": 240,
        "while_published_s": TIMES,
        "behind_s": TIMES,
        "verify": "ok",
    }

    def of(**changes: object) -> tuple[str, str]:
        return outcome("G25", {**RESULT, "others": {"flood": {**figures, **changes}}})

    assert of() == ("met", "")
    assert of(malformed=1000) == ("met", "1,000 of 1,000,000 records")
    assert of(placed=239)[0] == of(behind_s={**TIMES, "max": 5.1})[0] == "**not met**"


def test_faults_of_three_brokers_are_judged_by_what_their_test_recorded() -> None:
    def of(**recorded: str) -> tuple[str, str]:
        passed = {"tests": 3, "failed": 0, "skipped": 0, "recorded": recorded}
        return outcome("G26", {**RESULT, "checks": {"tests.chaos.test_three_brokers": passed}})

    figures = {"faults": "20", "acknowledged": "900", "longest_pause_s": "4.5"}
    assert of(**figures) == ("met", "")
    assert of(**{**figures, "faults": "3"}) == ("met", "3 of 20 faults")
    assert of(**{**figures, "longest_pause_s": "15.0"})[0] == "**not met**"
    assert of() == ("**not met**", "faults under load")
