"""A run stores its parts as it goes, replaces those of earlier runs, and keeps the others."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.parts.chaos.result_file import ResultFile, read_checks

TIMES = {"count": 33, "p50": 1.5, "p99": 3.2, "max": 3.3}
KILLS = {
    "kills": 33,
    "fewest_per_service": 3,
    "at_once": 1,
    "recovery_s": TIMES,
    "deciders_recovery_s": TIMES,
}
END = {
    "jobs_acknowledged": 4000,
    "jobs_ended": 4000,
    "verify": "ok",
    "violations": [],
    "rules": ["read models equal the fold"],
    "counts": {},
}
REPORT = """<testsuites><testsuite>
  <testcase classname="tests.a" name="one"/>
  <testcase classname="tests.a" name="two"><failure message="x"/></testcase>
  <testcase classname="tests.a" name="three"><error message="x"/></testcase>
  <testcase classname="tests.b" name="one"><skipped/></testcase>
  <testcase classname="tests.c" name="one"><properties>
    <property name="faults" value="20"/></properties></testcase>
</testsuite></testsuites>"""


def test_a_run_that_was_cut_short_leaves_its_figures_and_no_verdict(tmp_path: Path) -> None:
    ResultFile(tmp_path, "berth bench chaos --only kills", {}).store_part("kills", KILLS)
    text = (tmp_path / "chaos.md").read_text()
    assert "33 kills" in text
    assert "cut short before the final check" in text


def test_a_later_run_replaces_its_parts_and_keeps_the_others(tmp_path: Path) -> None:
    first = ResultFile(tmp_path, "first", {}, began=1e9)
    first.store_part("kills", KILLS)
    first.store_part("away", {"away_s": 60})
    second = ResultFile(tmp_path, "second", {}, began=2e9)
    second.store_part("kills", {**KILLS, "kills": 1100})
    second.store_verdict(END)
    stored = json.loads((tmp_path / "chaos.json").read_text())
    assert [run["command"] for run in stored["runs"].values()] == ["first", "second"]
    assert stored["parts"]["kills"]["kills"] == 1100
    second.store_part("away", {"away_s": 61})
    assert list(json.loads((tmp_path / "chaos.json").read_text())["runs"]) == [second.run_id]


def test_without_a_folder_results_stay_in_memory() -> None:
    results = ResultFile(None, "command", {"kills": 3}, began=1e9)
    results.store_part("kills", KILLS)
    assert results.data["parts"]["kills"]["run"] == "2001-09-09T01:46:40Z"
    assert results.run["settings"] == {"kills": 3}


def test_the_report_of_pytest_is_counted_by_test_file(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(REPORT)
    assert read_checks(path) == {
        "tests.a": {"tests": 3, "failed": 2, "skipped": 0},
        "tests.b": {"tests": 1, "failed": 0, "skipped": 1},
        "tests.c": {"tests": 1, "failed": 0, "skipped": 0, "recorded": {"faults": "20"}},
    }
