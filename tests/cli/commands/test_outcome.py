"""A wait for the end of jobs says what it waits for, once, where it takes a while."""

from __future__ import annotations

from typing import Any

import pytest

from cli.commands import outcome

SLOW, QUICK = 3 * outcome.LOOKS_BEFORE_NOTE, outcome.LOOKS_BEFORE_NOTE - 2


class Rows:
    """A client whose jobs succeed at so many looks."""

    def __init__(self, looks: dict[str, int]) -> None:
        self._looks = looks

    def look(self, path: str) -> dict[str, Any]:
        job = path.rpartition("/")[2]
        self._looks[job] -= 1
        return {"phase": "running" if self._looks[job] > 0 else "succeeded"}


def waited(monkeypatch: pytest.MonkeyPatch, looks: dict[str, int]) -> dict[str, str]:
    monkeypatch.setattr(outcome, "Watch", lambda client: client)
    monkeypatch.setattr(outcome, "await_answer", lambda client, ticket: None)
    monkeypatch.setattr(outcome, "WAIT_S", 0)
    return outcome.ended(Rows(looks), {"job_ids": [*looks]})  # type: ignore[arg-type]


def test_a_long_wait_names_the_job_that_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = waited(monkeypatch, {"a": QUICK, "b": SLOW})
    assert phases == {"a": "succeeded", "b": "succeeded"}
    shown = capsys.readouterr()
    assert shown.err == "waiting for 1 to end: `berth why b` says more\n" and shown.out == ""


def test_a_short_wait_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited(monkeypatch, {"a": QUICK})
    assert capsys.readouterr().err == ""
