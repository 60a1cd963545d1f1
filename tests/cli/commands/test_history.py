"""Events of several ledgers are printed in the order of their times."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.commands import history
from cli.commands.history import empty_text, in_order


def event(id_: str, second: int) -> dict[str, Any]:
    return {"id": id_, "time": f"2026-01-01T00:00:{second:02d}.000Z", "type": "job.held.v1"}


EVENTS = [event("a1", 3), event("a2", 9), event("b1", 1), event("b2", 3)]


@pytest.mark.parametrize(("last", "ids"), [(None, "b1 a1 b2 a2"), (2, "b2 a2"), (9, "b1 a1 b2 a2")])
def test_the_latest_is_the_last(last: int | None, ids: str) -> None:
    assert [event["id"] for event in in_order(EVENTS, last)] == ids.split()


def test_why_names_the_folder_of_a_history_that_has_left() -> None:
    assert empty_text(None) == "no history yet"
    folder = "read-models/job_event/2026-03/"
    assert folder in empty_text(folder)


def test_events_are_printed_up_to_what_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stream:
        def stream(self, path: str, query: object, *, alive: bool) -> Any:
            for document in EVENTS:
                yield "message", json.dumps(document), document["id"]
            yield "alive", "", ""
            raise AssertionError("read on after what is known")

    monkeypatch.setattr(history, "api", lambda data: Stream())
    history.events(last=3)
    times = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert times == ["00:00:03.000", "00:00:03.000", "00:00:09.000"]
