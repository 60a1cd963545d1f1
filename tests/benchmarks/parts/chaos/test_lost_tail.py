"""A service that stopped for a lost tail has named a runbook in its log."""

from pathlib import Path

from benchmarks.parts.chaos.lost_tail import runbook_lines


def test_the_last_line_that_names_a_runbook_is_taken_of_each_service(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "placement.log").write_text(
        "one: see docs/operations/a.md\ntwo: see docs/operations/b.md\nthree\n"
    )
    (logs / "admission.log").write_text("nothing\n")
    assert runbook_lines(tmp_path) == {"placement": "two: see docs/operations/b.md"}
