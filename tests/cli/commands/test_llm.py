"""`berth llm`: what the API answers is shown in words, and its absence with the next step."""

from __future__ import annotations

import json
from typing import Any

import pytest

from berth_client.calls import Call
from cli.commands import llm as verbs
from cli.commands import llm_requests
from cli.errors import BadInput, NotFound

USE = {
    "tenant": "ada",
    "user": "u",
    "requests": 2,
    "rejected": 1,
    "prompt_tokens": 20,
    "output_tokens": 10,
    "cached_tokens": 4,
    "wasted_tokens": 3,
    "waited_ms": 1800,
    "longest_wait_ms": 1000,
    "cost": 0.5,
}
GAP = {
    "endpoint": "chat",
    "began_at": 1_700_000_040_000,
    "span_ms": 60_000,
    "minutes": 1,
    "tenants": 2,
    "largest_gap": 120.5,
    "mean_gap": 120.5,
}
BUDGET = {
    "endpoint": "chat",
    "tenant": "ada",
    "kind": "user",
    "holder": "u",
    "limit": 100.0,
    "unit": "tokens",
    "memory": "half_life",
    "period_s": 60.0,
    "since": 1_700_000_000_000,
    "used": 30.0,
    "left": 70.0,
}


def a_request(request_id: str, tenant: str, state: str, queued_at: int) -> dict[str, Any]:
    what = {"request_id": request_id, "tenant": tenant, "endpoint": "chat", "application": "app"}
    return {**what, "state": state, "queued_at": queued_at}


ROW = {
    "model": "",
    "ahead": 2,
    "stage": 0,
    "prompt_tokens": 10,
    "max_output_tokens": 20,
    "output_tokens": 0,
    "wait_s": 0.0,
    "waited_ms": 0,
    "started_at": 0,
    "reason": "",
    "outcome": "",
}
ENDED = {"output_tokens": 7, "started_at": 5, "waited_ms": 900, "outcome": "completed"}
OPEN = [
    a_request("1", "ada", "running", 1),
    a_request("2", "ada", "queued", 7),
    a_request("3", "ada", "queued", 5),
    a_request("4", "bob", "running", 2),
]


class LlmApi:
    """Answers with one row of each kind, or none."""

    def __init__(self) -> None:
        self.documents: dict[str, list[dict[str, Any]]] = {
            "/v1/llm/usage": [USE],
            "/v1/llm/limits": [BUDGET],
            "/v1/llm/fairness": [GAP],
            "/v1/llm/rejections": [
                {"tenant": "ada", "endpoint": "chat", "reason": "queue_full", "rejected": 3}
            ],
            "/v1/tenants/ada/keys": [
                {"key_id": "k1", "role": "submitter", "models": ["chat"]},
                {"key_id": "k2", "role": "viewer", "models": []},
            ],
        }
        self.queries: list[dict[str, Any]] = []

    def pages(self, call: Call[Any], limit: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.get(call.path, dict(call.query))["items"]
        return rows[:limit]

    def get(self, path: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
        self.queries.append(query or {})
        if path == "/v1/llm/requests" and query:
            rows = [row for row in OPEN if row["state"] == query["state"]]
            return {"items": rows, "next": None}
        if path not in self.documents:
            raise NotFound("not_found")
        return {"items": self.documents[path], "next": None}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> LlmApi:
    api = LlmApi()
    monkeypatch.setattr(verbs, "api", lambda data: api)
    return api


def printed(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_top_counts_open_requests_by_sender(
    api: LlmApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verbs.open_by_sender(OPEN)[0] == {
        "tenant": "ada",
        "endpoint": "chat",
        "application": "app",
        "running": 1,
        "waiting": 2,
        "oldest_queued_at": 5,
    }
    verbs.top()
    rows = printed(capsys)
    assert rows[1][:5] == ["ada", "chat", "app", "1", "2"]
    assert rows[2] == ["bob", "chat", "app", "1", "0", "-"]


def test_use_has_waits_and_cost(api: LlmApi, capsys: pytest.CaptureFixture[str]) -> None:
    verbs.usage("user", "24h")
    [_, row] = printed(capsys)
    assert row == ["ada", "u", "2", "1", "20", "10", "4", "3", "0.9", "s", "1.0", "s", "0.5"]
    verbs.usage("tenant", "24h", as_json=True)
    assert json.loads(capsys.readouterr().out) == [USE]
    assert api.queries[-1]["by"] == "tenant"
    with pytest.raises(BadInput, match="duration: 'week'"):
        verbs.usage("tenant", "week")


def test_rejections_say_what_they_mean(api: LlmApi, capsys: pytest.CaptureFixture[str]) -> None:
    verbs.usage("tenant", "24h", rejected=True)
    assert "ada chat 3 queue_full as many requests" in " ".join(printed(capsys)[1])


def test_limits_name_the_holder_and_what_is_left(
    api: LlmApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.limits()
    row = " ".join(printed(capsys)[1])
    assert row.startswith("chat ada user u 100 tokens half in 1 min 0 s 2023-11-14 ")
    assert row.endswith(" 30 70")
    api.documents["/v1/llm/limits"] = []
    verbs.limits()
    assert "`berth endpoints set ENDPOINT budgets=" in capsys.readouterr().out


def test_keys_have_their_models(api: LlmApi, capsys: pytest.CaptureFixture[str]) -> None:
    verbs.keys("ada")
    assert printed(capsys)[1:] == [
        ["k1", "submitter", "chat"],
        ["k2", "viewer", "all", "of", "the", "tenant"],
    ]
    with pytest.raises(NotFound, match="no such tenant: bob; `berth tenants list` shows all"):
        verbs.keys("bob")


def test_an_unknown_request_has_a_next_step(api: LlmApi) -> None:
    with pytest.raises(NotFound, match="no such request: r; `berth llm requests` lists them"):
        verbs.why("r")


def test_a_request_that_waits_without_engines_says_so(
    api: LlmApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "health: connection failed"
    engine = {"name": "a", "available": False, "reason": reason, "since": 1}
    waiting = {**a_request("r1", "ada", "queued", 1), **ROW}
    documents = {
        "/v1/llm/requests/r1": waiting,
        "/v1/endpoints/chat": {"endpoint": "chat", "engines": [engine]},
    }
    monkeypatch.setattr(api, "get", lambda path, query=None: documents[path])
    verbs.why("r1")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("no engine of chat can serve: a: health: connection failed for ")


def test_requests_are_listed_with_their_ids(
    api: LlmApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[dict[str, Any]] = []

    def pages(_: object, path: str, query: dict[str, Any], limit: int) -> list[dict[str, Any]]:
        queries.append({"path": path, "limit": limit, **query})
        return [{**a_request("r1", "ada", "finished", 1_700_000_000_000), **ROW, **ENDED}]

    monkeypatch.setattr(llm_requests, "api", lambda data: api)
    monkeypatch.setattr(llm_requests, "pages", pages)
    llm_requests.requests(tenant="ada", state="finished", limit=7)
    [query] = queries
    assert (query["path"], query["limit"]) == ("/v1/llm/requests", 7)
    assert (query["tenant"], query["state"]) == ("ada", "finished")
    row = printed(capsys)[1]
    assert (row[0], row[-1], row[-2]) == ("r1", "completed", "10+7")


def test_gaps_are_shown_with_their_span(api: LlmApi, capsys: pytest.CaptureFixture[str]) -> None:
    verbs.fairness("chat", "7d")
    row = " ".join(printed(capsys)[1])
    assert row.startswith("chat 2023-11-14")
    assert row.endswith("1 min 0 s 1 2 120.5 120.5")
    assert api.queries[-1]["endpoint"] == "chat"
    verbs.fairness(as_json=True)
    assert json.loads(capsys.readouterr().out) == [GAP]
    api.documents["/v1/llm/fairness"] = []
    verbs.fairness()
    assert "no two tenants waited through a minute" in capsys.readouterr().out
