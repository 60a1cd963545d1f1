"""Requests, pages, repetitions, errors and waits of both clients, over a real socket."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from berth_client import (
    AsyncClient,
    BerthError,
    Client,
    async_client,
    async_session,
    client,
    session,
    transport,
)
from berth_client.answers import Page
from berth_client.calls import Call
from tests.serving import Quiet, serving

JOB = "/v1/jobs/j"


class Gateway(Quiet):
    """Gives the next of the answers of a path, the last one again and again; notes requests."""

    answers: ClassVar[dict[str, list[tuple[int, Any]]]] = {}
    requests: ClassVar[list[tuple[str, str, str, Any]]] = []

    def do_GET(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        key = self.headers.get("idempotency-key", "")
        self.requests.append((self.command, self.path, key, body))
        answers = type(self).answers[urlsplit(self.path).path]
        status, content = answers.pop(0) if len(answers) > 1 else answers[0]
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.answer(status, raw)

    do_POST = do_GET


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(Gateway, "answers", {})
    monkeypatch.setattr(Gateway, "requests", [])
    with serving(Gateway) as address:
        yield address


def sync_submit(url: str) -> Any:
    with Client(url, "id.secret") as berth:
        return berth.submit({"name": "n"}, tenant="ada", array_size=2)


def async_submit(url: str) -> Any:
    async def submit() -> Any:
        async with AsyncClient(url, "id.secret") as berth:
            return await berth.submit({"name": "n"}, tenant="ada", array_size=2)

    return asyncio.run(submit())


@pytest.mark.parametrize("submit", [sync_submit, async_submit])
def test_a_submission_is_repeated_with_one_key_until_it_has_an_answer(
    url: str, submit: Any
) -> None:
    Gateway.answers["/v1/jobs"] = [(503, {}), (429, {}), (202, {"job_id": "j"})]
    assert submit(url) == {"job_id": "j"}
    keys = {key for _, _, key, _ in Gateway.requests}
    assert len(Gateway.requests) == 3 and len(keys) == 1 and "" not in keys
    body = Gateway.requests[0][3]
    assert body == {"spec": {"name": "n"}, "tenant": "ada", "array_size": 2}


def test_repetitions_end_and_others_than_repeatable_requests_are_sent_once(url: str) -> None:
    Gateway.answers = {"/v1/jobs": [(503, {"reason": "away"})], "/v1/pools": [(503, {})]}
    with Client(url, "", retries=2) as berth:
        with pytest.raises(BerthError, match="away"):
            berth.submit({})
        assert len(Gateway.requests) == 3
        with pytest.raises(BerthError) as raised:
            berth.send(Call("POST", "/v1/pools", body={}))
    assert len(Gateway.requests) == 4 and raised.value.is_temporary


def test_a_refusal_is_raised_at_once_with_status_field_value_and_rule(url: str) -> None:
    fault = {"field": "gang.workers", "value": 0, "rule": "must be above 0"}
    problem = {"reason": "invalid", "detail": "invalid request", "errors": [fault]}
    Gateway.answers["/v1/jobs"] = [(422, problem)]
    with Client(url, "") as berth, pytest.raises(BerthError) as raised:
        berth.submit({})
    error = raised.value
    assert (error.status, error.reason, error.detail) == (422, "invalid", "invalid request")
    assert (error.field, error.value, error.rule) == ("gang.workers", 0, "must be above 0")
    assert str(error) == "invalid request: gang.workers: 0; must be above 0"
    assert len(Gateway.requests) == 1


def test_an_address_without_a_server_is_an_error_without_status() -> None:
    berth = Client("http://127.0.0.1:1", "", retries=0)
    with berth, pytest.raises(BerthError, match="is not reachable") as raised:
        berth.whoami()
    assert (raised.value.status, raised.value.is_temporary) == (0, True)
    assert isinstance(raised.value.__cause__, ConnectionRefusedError)
    with pytest.raises(BerthError, match="invalid address"):
        Client("nonsense", "")


def test_a_list_is_read_page_by_page_up_to_the_limit(url: str) -> None:
    rows = [{"items": [{"n": 1}, {"n": 2}], "next": "2"}, {"items": [{"n": 3}], "next": None}]
    call = Call[Page[dict[str, int]]]("GET", "/v1/jobs", {"limit": 2, "phase": None})

    async def all_rows() -> list[dict[str, int]]:
        async with AsyncClient(url, "") as berth:
            return [row async for row in berth.pages(call)]

    with Client(url, "") as berth:
        Gateway.answers["/v1/jobs"] = [(200, page) for page in rows]
        assert [row["n"] for row in berth.pages(call)] == [1, 2, 3]
        queries = [parse_qs(urlsplit(path).query) for _, path, _, _ in Gateway.requests]
        assert queries == [{"limit": ["2"]}, {"limit": ["2"], "after": ["2"]}]
        Gateway.answers["/v1/jobs"] = [(200, page) for page in rows]
        assert [row["n"] for row in berth.pages(call, 2)] == [1, 2]
    assert len(Gateway.requests) == 3
    Gateway.answers["/v1/jobs"] = [(200, page) for page in rows]
    assert [row["n"] for row in asyncio.run(all_rows())] == [1, 2, 3]


def test_a_wait_outlives_outages_and_a_job_that_is_not_known_yet(url: str) -> None:
    ended = {"phase": "failed", "exit_code": 3}
    looks = [(404, {}), (503, {}), (200, {"phase": "running"}), (200, ended)]

    async def wait() -> Any:
        async with AsyncClient(url, "", retries=0) as berth:
            return await berth.wait("j")

    Gateway.answers[JOB] = list(looks)
    with Client(url, "", retries=0) as berth:
        assert berth.wait("j") == ended
        Gateway.answers[JOB] = list(looks)
        assert asyncio.run(wait()) == ended
        Gateway.answers[JOB] = [(200, {"phase": "running"})]
        with pytest.raises(TimeoutError, match="job j has not ended after 0 s"):
            berth.wait("j", 0)
        Gateway.answers[JOB] = [(403, {"reason": "forbidden"})]
        with pytest.raises(BerthError, match="forbidden"):
            berth.wait("j")


def test_a_command_that_is_refused_is_an_error(url: str) -> None:
    refused = {"accepted": False, "reason": "no_such_pool", "detail": "pool: main"}
    Gateway.answers["/v1/commands/c"] = [(404, {}), (200, refused)]
    with Client(url, "") as berth, pytest.raises(BerthError, match="no_such_pool: pool: main"):
        berth.wait_command({"command_id": "c", "trace_id": ""})


def test_output_is_followed_through_a_break_each_line_once(url: str) -> None:
    def line(number: int) -> bytes:
        text = json.dumps({"attempt": 1, "rank": 0, "line": number, "text": "\u2028"})
        return f"event: line\ndata: {text}\n\n".encode()

    end = b'event: end\ndata: {"reason":"ended"}\n\n'
    Gateway.answers[f"{JOB}/logs"] = [(200, line(0)), (200, line(0) + line(1) + end)]
    with Client(url, "") as berth:
        assert [row["line"] for row in berth.follow_logs("j")] == [0, 1]


def test_output_of_a_job_that_is_transferred_is_followed_in_each_pool(url: str) -> None:
    def line(text: str, **more: str) -> bytes:
        data = json.dumps({"attempt": 1, "rank": 0, "line": 0, "text": text, **more})
        return f"event: line\ndata: {data}\n\n".encode()

    end = b'event: end\ndata: {"reason":"ended"}\n\n'
    first, later = line("main"), line("side", job_id="j2")
    Gateway.answers[f"{JOB}/logs"] = [(200, first + later), (200, first + later + end)]
    with Client(url, "") as berth:
        assert [row["text"] for row in berth.follow_logs("j")] == ["main", "side"]


def test_output_is_selected_by_both_clients_as_by_the_route(url: str) -> None:
    async def logs(**selected: int) -> object:
        async with AsyncClient(url, "") as berth:
            return await berth.logs("j", **selected)

    selected = {"tail": 5, "rank": 0, "attempt": 2, "from_line": 0}
    for given in ({}, selected):
        Gateway.answers[f"{JOB}/logs"] = [(200, {"lines": [{"line": 7}]})] * 2
        with Client(url, "") as berth:
            assert berth.logs("j", **given) == asyncio.run(logs(**given)) == [{"line": 7}]
    queries = [parse_qs(urlsplit(path).query) for _, path, _, _ in Gateway.requests]
    of_selected = {name: [str(value)] for name, value in selected.items()}
    assert queries == [{"tail": ["1000"]}] * 2 + [of_selected] * 2


def test_usage_is_read_to_its_last_page(url: str) -> None:
    pages = [{"items": [{"starts": 1}], "next": "1"}, {"items": [{"starts": 2}], "next": None}]
    Gateway.answers["/v1/usage"] = [(200, page) for page in pages]
    with Client(url, "") as berth:
        assert [row["starts"] for row in berth.usage("day", pool="gpu")] == [1, 2]
    queries = [parse_qs(urlsplit(path).query) for _, path, _, _ in Gateway.requests]
    assert queries[0] == {"by": ["day"], "pool": ["gpu"], "limit": ["1000"]}
    assert queries[1] == {**queries[0], "after": ["1"]}


NAMES = {
    "AsyncClient": "Client",
    "AsyncSession": "Session",
    "AsyncIterator": "Iterator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "_all": "list",
    "aclose": "close",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "asyncio": "time",
}
"""Names of asyncio and of httpx's client for it -> those without."""


class WithoutAwait(ast.NodeTransformer):
    """Makes of the class for asyncio the one that a thread calls."""

    def visit(self, node: ast.AST) -> ast.AST:
        plain: ast.AST = super().visit(node)
        for field in ("id", "attr", "name"):
            if (name := getattr(plain, field, None)) in NAMES:
                setattr(plain, field, NAMES[name])
        if type(plain).__name__.startswith("Async"):
            plain.__class__ = getattr(ast, type(plain).__name__.removeprefix("Async"))
        match plain:
            case ast.Await():
                return plain.value
            case ast.With(items, [ast.With(more, body)]):
                return ast.With([*items, *more], body)
            case ast.For(ast.Name(row), rows, [ast.Expr(ast.Yield(ast.Name(same)))]) if row == same:
                return ast.Expr(ast.YieldFrom(rows))
        return plain


def class_in(module: ModuleType) -> ast.AST:
    tree = ast.parse(Path(str(module.__file__)).read_text())
    return next(node for node in tree.body if isinstance(node, ast.ClassDef))


@pytest.mark.parametrize(("waiting", "plain"), [(async_client, client), (async_session, session)])
def test_both_clients_are_the_same_code_but_for_waiting(
    waiting: ModuleType, plain: ModuleType
) -> None:
    """Also the bodies and docstrings of methods; each class is written out, to be read as it is."""
    made = ast.fix_missing_locations(WithoutAwait().visit(class_in(waiting)))
    assert ast.unparse(made) == ast.unparse(class_in(plain))
