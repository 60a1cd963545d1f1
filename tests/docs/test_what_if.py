"""The example of the page on what-if prints what the page shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.pages import blocks

PAGE = (Path(__file__).parents[2] / "docs" / "what-if.md").read_text()
EXAMPLE = PAGE.partition("## An example")[2]

pytestmark = pytest.mark.slow


def test_the_example_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (commands,) = blocks(EXAMPLE)
    (shown,) = blocks(EXAMPLE, "text")
    for line in commands.replace("\\\n", " ").splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    assert lines_of(done.stdout) == lines_of(shown)
    assert (tmp_path / "what-if.svg").stat().st_size > 1000


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
