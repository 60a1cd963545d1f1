"""`berth webhooks`: the secret is printed once, and a test waits for its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth_client.calls import Call
from cli.commands import webhooks as verbs
from cli.errors import BadInput, Refused

ROW = {
    "tenant": "ada",
    "name": "ci",
    "url": "https://hooks.example.org/",
    "events": ["failed"],
    "waiting": 1,
    "delivered": 2,
    "given_up": 3,
    "dropped": 4,
    "failing_since": 0,
    "disabled_at": 0,
    "last_error": "status 500",
    "tested_at": 5,
    "test_result": "",
}


class WebhooksApi:
    """An API that notes what it is sent; a test has its result at the second look."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any, Any]] = []
        self.result = "delivered"

    def post(self, path: str, body: Any = None, query: Any = None) -> dict[str, Any]:
        self.sent.append(("POST", path, body, query))
        return {"secret": "whsec_x"}

    def patch(self, path: str, body: Any, query: Any) -> dict[str, Any]:
        self.sent.append(("PATCH", path, body, query))
        return {}

    def delete(self, path: str, query: Any) -> dict[str, Any]:
        self.sent.append(("DELETE", path, None, query))
        return {}

    def pages(self, call: Call[Any], limit: int) -> list[dict[str, Any]]:
        assert call.path == "/v1/webhooks"
        tested = any(path.endswith("/test") for _, path, _, _ in self.sent)
        return [{**ROW, **({"tested_at": 6, "test_result": self.result} if tested else {})}]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> WebhooksApi:
    api = WebhooksApi()
    monkeypatch.setattr(verbs, "api", lambda data: api)
    return api


def test_create_prints_the_secret_alone(
    api: WebhooksApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.create("ci", "https://hooks.example.org/", "fail", ["gpu"], "ada")
    body = {"name": "ci", "url": "https://hooks.example.org/", "events": ["failed", "rejected"]}
    assert api.sent == [("POST", "/v1/webhooks", {**body, "pools": ["gpu"]}, {"tenant": "ada"})]
    assert capsys.readouterr().out == "whsec_x\n"


def test_a_secret_of_a_file_is_sent_and_not_printed(
    api: WebhooksApi, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "signing").write_text("whsec_mine\n")
    verbs.create("ci", "https://a.example.org/", "failed", secret_file=tmp_path / "signing")
    body = {"name": "ci", "url": "https://a.example.org/", "events": ["failed"]}
    assert api.sent[0][2] == {**body, "secret": "whsec_mine"}
    assert capsys.readouterr().out == "ci: created\n"


def test_set_sends_what_is_named_alone(
    api: WebhooksApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.set_("ci", events="started", tenant="ada")
    verbs.set_("ci", url="https://b.example.org/", pool=["null"])
    assert api.sent == [
        ("PATCH", "/v1/webhooks/ci", {"events": ["started"]}, {"tenant": "ada"}),
        (
            "PATCH",
            "/v1/webhooks/ci",
            {"url": "https://b.example.org/", "pools": None},
            {"tenant": None},
        ),
    ]
    assert capsys.readouterr().out == "ci: events changed\nci: url, pools changed\n"
    with pytest.raises(BadInput, match="--url, --events or --pool is allowed"):
        verbs.set_("ci")


def test_create_names_the_state_changes_that_are_allowed(api: WebhooksApi) -> None:
    with pytest.raises(BadInput, match="--events: 'done'"):
        verbs.create("ci", "https://hooks.example.org/", "done")


def test_list_shows_figures_and_the_last_error(
    api: WebhooksApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.list_()
    shown = capsys.readouterr().out.splitlines()[1].split()
    assert shown[:8] == ["ada", "ci", "https://hooks.example.org/", "failed", "1", "2", "3", "4"]
    assert shown[-2:] == ["status", "500"]


def test_a_test_waits_for_its_result(api: WebhooksApi, capsys: pytest.CaptureFixture[str]) -> None:
    verbs.test("ci", "ada")
    assert api.sent == [("POST", "/v1/webhooks/ci/test", None, {"tenant": "ada"})]
    assert capsys.readouterr().out == "ci: delivered\n"
    api.result = "status 500"
    api.sent.clear()
    with pytest.raises(Refused, match="not delivered"):
        verbs.test("ci")


def test_delete(api: WebhooksApi) -> None:
    verbs.delete("ci", "ada")
    assert api.sent == [("DELETE", "/v1/webhooks/ci", None, {"tenant": "ada"})]
