"""`berth pipeline plan` prints schedules, draws them, and names what is wrong with its input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.errors import BadInput, CliError
from cli.main import app

SLOW_LINK = [
    "pipeline",
    "plan",
    "--stages",
    "4",
    "--microbatches",
    "16",
    "--forward",
    "10",
    "--backward",
    "10",
    "--link-delay",
    "0,0,60",
]


def test_the_document_has_time_memory_and_operations() -> None:
    shown = CliRunner().invoke(app, [*SLOW_LINK, "--json"], catch_exceptions=False).stdout
    document = json.loads(shown)
    rows = {row["schedule"]: row for row in document["schedules"]}
    assert list(rows) == ["1f1b", "zb_h1", "zb_h2", "adapted"]
    assert (rows["zb_h2"]["iteration_ms"], rows["adapted"]["iteration_ms"]) == (1120, 570)
    assert rows["zb_h2"]["peak_activations"] == [7, 5, 3, 1]
    assert rows["adapted"]["operations"][3][:3] == ["F0", "B0", "F1"]
    assert document["pipeline"]["link_delay_ms"] == [0, 0, 60]


def test_people_get_a_table_and_the_operations() -> None:
    words = [*SLOW_LINK, "--schedule", "zb_h1", "--memory", "8"]
    shown = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert "ITERATION MS" in shown
    assert "operations of zb_h1, by stage:\n0: F0 F1 F2 F3 B0" in shown


def test_the_drawing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "timeline.svg"
    CliRunner().invoke(app, [*SLOW_LINK, "--svg", str(file)], catch_exceptions=False)
    assert file.read_text().startswith("<svg")


def test_a_drawing_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    words = [*SLOW_LINK, "--svg", str(tmp_path / "no" / "a.svg")]
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, CliError)
    assert "--svg: " in str(error)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--memory", "0"], "--memory: 0 is not between"),
        (["--memory", "x"], "--memory: 'x'; whole numbers"),
        (["--link-delay", "1,2"], "--link-delay: 2 values; the rule is 1 or 3"),
        (["--schedule", "gpipe"], "--schedule: 'gpipe'; one of 1f1b"),
        (["--weight", "-1"], "--weight: -1 is not a finite number of 0 or more"),
    ],
)
def test_bad_input_is_named(words: list[str], rule: str) -> None:
    error = CliRunner().invoke(app, [*SLOW_LINK, *words]).exception
    assert isinstance(error, BadInput)
    assert rule in str(error)
