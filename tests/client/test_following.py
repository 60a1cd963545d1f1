"""A stream is opened again when the API was away, for a bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from berth_client import BerthError, Client, session
from tests.patience import PATIENCE_S
from tests.serving import Quiet, serving

END = b"event: end\ndata: {}\n\n"


class Gateway(Quiet):
    """Gives the next of the answers, the last one again and again; notes what it was asked."""

    answers: list[tuple[int, bytes]]
    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        answers = type(self).answers
        self.paths.append(self.path)
        self.answer(*(answers.pop(0) if len(answers) > 1 else answers[0]))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(session, "AGAIN_S", 0.01)
    monkeypatch.setattr(Gateway, "paths", [])
    with serving(Gateway) as url:
        yield Client(url, "", retries=0)


def event(number: int) -> bytes:
    return b"event: x\ndata: %d\n\n" % number


def at(position: bytes, number: int) -> bytes:
    return b"id: %b\n%b" % (position, event(number))


def test_a_stream_that_breaks_off_is_opened_again_with_one_message(api: Client) -> None:
    Gateway.answers = [
        (200, event(1)),
        (503, b"{}"),
        (503, b"{}"),
        (200, b": alive\n\n"),
        (200, event(1) + event(2) + END),
    ]
    reported: list[str] = []
    events = list(api.follow("/x", {}, reported.append, away_s=PATIENCE_S))
    assert events == [("x", "1", ""), ("x", "1", ""), ("x", "2", ""), ("end", "{}", "")]
    broken = (
        f"{api.installation.url} is not reachable: the stream broke off; trying again for up to"
    )
    assert [line.startswith(broken) for line in reported] == [True, False, True, False]
    assert reported[1::2] == ["connected again", "connected again"]


def test_an_api_that_stays_away_is_an_error(api: Client) -> None:
    Gateway.answers = [(200, event(1)), (503, b"{}")]
    with pytest.raises(BerthError, match="status 503"):
        list(api.follow("/x", {}, list[str]().append, away_s=0.05))


def test_an_api_that_never_answered_is_an_error_at_once(api: Client) -> None:
    Gateway.answers = [(503, b"{}"), (200, END)]
    with pytest.raises(BerthError):
        list(api.follow("/x", {}, list[str]().append, away_s=PATIENCE_S))


def test_a_refusal_is_final(api: Client) -> None:
    Gateway.answers = [(200, event(1)), (404, b"{}"), (200, END)]
    with pytest.raises(BerthError, match="status 404"):
        list(api.follow("/x", {}, list[str]().append, away_s=PATIENCE_S))


def test_a_stream_of_events_with_positions_goes_on_behind_the_last_one(api: Client) -> None:
    Gateway.answers = [
        (200, at(b"1.2", 1) + at(b"1.3", 2)),
        (503, b"{}"),
        (200, at(b"2.3", 3) + END),
    ]
    reported: list[str] = []
    events = api.follow("/x", {"since": "start"}, reported.append, away_s=PATIENCE_S)
    assert [event.data for event in events] == ["1", "2", "3", "{}"]
    assert Gateway.paths == ["/x?since=start", "/x?since=1.3", "/x?since=1.3"]
    assert reported[-1] == "connected again"


def test_events_that_are_missed_before_the_first_one_are_reported(api: Client) -> None:
    Gateway.answers = [(200, b": alive\n\n"), (200, at(b"1", 1) + END)]
    reported: list[str] = []
    list(api.follow("/x", {"since": ""}, reported.append, away_s=PATIENCE_S))
    assert reported[-1].startswith("connected again; events of the time between are missing")
