"""Answers of the API become results, errors and exit codes, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cli.api.http import Api, part, pool_field
from cli.api.target import Target
from cli.errors import BadInput, CliError, NotFound, Refused, TooManyRequests, Unreachable
from tests.serving import Quiet, serving


class Gate(Quiet):
    """Answers `/status/N` with a problem of that status, `/echo` with what it was sent."""

    def do_GET(self) -> None:
        if self.path.startswith("/status/"):
            self._problem(int(self.path.rpartition("/")[2]))
        elif self.path == "/stream":
            self.answer(200, b": alive\n\nid: 1\nevent: x\ndata: {}\n\nevent: end\ndata: bye\n\n")
        elif self.path == "/broken":
            self.answer(200, b"id: 1\nevent: x\ndata: {}\n\n: alive\n\n")
        elif self.path == "/page":
            self.answer(200, b"<html>")
        else:
            self._echo()

    do_POST = do_GET

    def _echo(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        request = {
            "path": self.path,
            "key": self.headers.get("authorization", ""),
            "body": json.loads(self.rfile.read(size)) if size else None,
        }
        self.answer(200, json.dumps(request).encode())

    def _problem(self, status: int) -> None:
        faults = [
            {"field": "gang.workers", "value": 9, "rule": "is too many"},
            {"field": "", "value": None, "rule": "is odd"},
        ]
        problem = {"reason": "some_reason", "detail": "said", "errors": faults}
        self.answer(status, json.dumps(problem).encode())


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(Gate) as url:
        yield Api(Target(url, "id.secret"))


def test_the_key_goes_along_and_what_was_not_given_stays_away(api: Api) -> None:
    assert api.get("/v1/jobs", {"tenant": "a b", "phase": None, "name": ""}) == {
        "path": "/v1/jobs?tenant=a+b",
        "key": "Bearer id.secret",
        "body": None,
    }
    assert api.post("/v1/jobs", {"a": 1})["body"] == {"a": 1}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BadInput),
        (413, BadInput),
        (422, BadInput),
        (404, NotFound),
        (401, Refused),
        (403, Refused),
        (409, Refused),
        (503, Unreachable),
        (429, TooManyRequests),
        (500, CliError),
    ],
)
def test_a_problem_is_one_line_with_its_exit_code(
    api: Api, status: int, error: type[CliError]
) -> None:
    with pytest.raises(error) as error_info:
        api.get(f"/status/{status}")
    text, hint = "some_reason: said: gang.workers: 9; is too many; body: is odd", ""
    if status == 401:
        hint = "; BERTH_KEY holds the key, an admin makes one: `berth keys create`"
    assert str(error_info.value) == text + hint
    assert type(error_info.value) is error


def test_a_response_of_another_server_is_an_error(api: Api) -> None:
    with pytest.raises(CliError, match="not a JSON object: is this the address of a Berth API"):
        api.get("/page")


def test_a_stream_is_its_events_and_its_silence_only_where_wanted(api: Api) -> None:
    assert list(api.stream("/stream")) == [("x", "{}", "1"), ("end", "bye", "")]
    assert next(api.stream("/stream", alive=True)) == ("alive", "", "")


def test_a_stream_that_breaks_off_is_an_error(api: Api) -> None:
    stream = api.stream("/broken")
    assert next(stream) == ("x", "{}", "1")
    with pytest.raises(Unreachable, match="is not reachable: the stream broke off"):
        next(stream)


def test_a_part_of_a_path_cannot_leave_its_place() -> None:
    assert part("../a?b#c") == "..%2Fa%3Fb%23c"


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "nonsense"])
def test_what_is_no_address_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput):
        Api(Target(url, ""))


def test_a_body_names_a_pool_only_if_one_is_given() -> None:
    assert (pool_field("main"), pool_field(None)) == ({"pool": "main"}, {})
