"""A line that is written anew takes one line of the terminal."""

from __future__ import annotations

import pytest

from cli.text.open_line import CLEAR, OpenLine


def test_a_state_replaces_the_one_before_and_is_cleared_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    line = OpenLine()
    line.clear()
    line.show("[1/0] 10 % of all")
    line.show("[1/0]\x1b x")
    line.clear()
    line.clear()
    first, second, end = capsys.readouterr().out.split(CLEAR)[1:]
    assert first == "[1/0] 10 " and "\x1b" not in second and end == ""
