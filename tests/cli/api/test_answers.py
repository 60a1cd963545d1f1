"""Whoever waits goes on waiting while the API or its Postgres is away, but not for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import HTTPServer

import pytest

from cli.api.answers import Watch, await_answer
from cli.api.http import Api, Json
from cli.api.target import Target
from cli.errors import Refused, Unreachable
from tests.serving import Quiet, serving

YES: Json = {"accepted": True}
NO: Json = {"accepted": False, "type": "job.submit.v1", "reason": "quota", "detail": "spent"}


class Scripted(HTTPServer):
    """Answers one after the other; the last one again and again."""

    answers: list[tuple[int, Json]]

    def next(self) -> tuple[int, Json]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Answer(Quiet):
    def do_GET(self) -> None:
        assert isinstance(self.server, Scripted)
        status, problem = self.server.next()
        self.answer(status, json.dumps(problem).encode())


@pytest.fixture
def server() -> Iterator[Scripted]:
    made = Scripted(("127.0.0.1", 0), Answer)
    with serving(made):
        yield made


def api_of(server: Scripted) -> Api:
    return Api(Target(f"http://127.0.0.1:{server.server_port}", ""))


def test_an_answer_is_waited_for_while_postgres_starts_again(server: Scripted) -> None:
    server.answers = [(503, {"reason": "reads_unavailable"}), (404, {}), (429, {}), (200, YES)]
    assert await_answer(api_of(server), {"command_id": "c"}) == YES
    assert len(server.answers) == 1


def test_a_refusal_is_raised_with_its_reason(server: Scripted) -> None:
    server.answers = [(503, {}), (200, NO)]
    with pytest.raises(Refused, match=r"job\.submit\.v1: quota: spent"):
        await_answer(api_of(server), {"command_id": "c"})


def test_a_lasting_outage_is_raised_with_the_last_error(server: Scripted) -> None:
    server.answers = [(503, {"reason": "reads_unavailable", "detail": "Postgres"})]
    watch = Watch(api_of(server), away_s=0.05)
    with pytest.raises(Unreachable, match="reads_unavailable: Postgres"):
        while True:
            assert watch.look("/v1/jobs/j") is None


def test_a_gateway_that_is_gone_is_waited_for_as_well(server: Scripted) -> None:
    server.answers = [(200, YES)]
    gone = Watch(Api(Target("http://127.0.0.1:1", "")))
    assert gone.look("/v1/jobs/j") is None
    assert Watch(api_of(server)).look("/v1/jobs/j") == YES
