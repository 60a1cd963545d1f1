"""`berth users`: a user has bounds, which a change names, and keys, which never change."""

from __future__ import annotations

from typing import Any

import pytest

import cli.commands.users as verbs
from berth_client.calls import Call
from cli.errors import BadInput
from shared.contracts.bounds import UserBounds

BOUNDS = UserBounds(pools=("gpu",), max_job_gpus=4).model_dump(mode="json")
ADA = {
    "tenant": "vision",
    "user": "ada",
    "registered": True,
    "bounds": BOUNDS,
    "keys": ["k1", "k3"],
    "use": {"open_jobs": 3, "running": 2, "gpus": 4.0, "gpu_ms": 7_200_000},
}


class UsersApi:
    """Has two users of one tenant, and notes what it is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any, Any]] = []

    def pages(self, call: Call[Any], limit: int) -> list[dict[str, Any]]:
        assert call.path == "/v1/users"
        return [ADA, {**ADA, "user": "eve", "registered": False, "keys": ["k2"]}]

    def get(self, path: str, query: Any) -> dict[str, Any]:
        assert path == "/v1/keys"
        return {"items": [{"key_id": "k2", "user": "eve"}, {"key_id": "k4", "user": None}]}

    def post(self, path: str, body: Any, query: Any = None) -> dict[str, Any]:
        self.sent.append(("POST", path, body, query))
        return {"command_id": "c", "key": "shown.once"}

    def patch(self, path: str, body: Any, query: Any) -> dict[str, Any]:
        self.sent.append(("PATCH", path, body, query))
        return {"command_id": "c"}

    def delete(self, path: str, query: Any) -> dict[str, Any]:
        self.sent.append(("DELETE", path, None, query))
        return {"command_id": "c"}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> UsersApi:
    api = UsersApi()
    monkeypatch.setattr(verbs, "api", lambda data: api)
    monkeypatch.setattr(verbs, "await_answer", lambda client, receipt: receipt)
    return api


def test_users_are_listed_with_use_keys_and_the_bounds_that_differ(
    api: UsersApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.list_()
    head, ada, eve = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["USER", "TENANT", "OPEN", "JOBS"]
    assert ada.split()[:5] == ["ada", "vision", "3", "2", "4"]
    assert ada.endswith("pools=gpu max_job_gpus=4.0") and eve.endswith("not registered")


def test_a_new_user_is_registered_with_bounds_and_gets_a_key(
    api: UsersApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.create("bob", "vision", ["max_open_jobs=5", "max_grace_s=null"], max_job_gpus=2)
    body = {"user": "bob", "max_job_gpus": 2, "max_open_jobs": 5}
    key = {"user": "bob", "role": "submitter"}
    assert api.sent == [
        ("POST", "/v1/users", body, {"tenant": "vision"}),
        ("POST", "/v1/tenants/vision/keys", key, None),
    ]
    assert capsys.readouterr().out.splitlines()[-1] == "shown.once"


@pytest.mark.parametrize(("user", "with_key"), [("eve", True), ("bob", False)])
def test_who_has_a_key_or_tokens_gets_no_further_key(
    api: UsersApi, capsys: pytest.CaptureFixture[str], user: str, with_key: bool
) -> None:
    verbs.create(user, "vision", with_key=with_key)
    assert api.sent == [("POST", "/v1/users", {"user": user}, {"tenant": "vision"})]
    assert ("its keys: k2" in capsys.readouterr().out) == with_key


def test_a_change_sends_the_named_bounds_and_no_key(api: UsersApi) -> None:
    verbs.set_("ada", "vision", ["max_open_jobs=null"], pool=["gpu", "cpu"])
    body = {"pools": ["gpu", "cpu"], "max_open_jobs": None}
    assert api.sent == [("PATCH", "/v1/users/ada", body, {"tenant": "vision"})]
    with pytest.raises(BadInput, match="no bound; NAME=VALUE, --pool"):
        verbs.set_("ada", "vision")
    with pytest.raises(BadInput, match="unknown setting: users; one of highest_class"):
        verbs.set_("ada", "vision", ["users=any"])


def test_a_deleted_user_is_one_request(api: UsersApi) -> None:
    verbs.delete("ada", "vision")
    assert api.sent == [("DELETE", "/v1/users/ada", None, {"tenant": "vision"})]


def test_bounds_are_listed_with_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    verbs.bounds_()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(UserBounds.model_fields)
    assert any(line.split()[:2] == ["highest_class", "system"] for line in lines)


class AddressApi:
    """Notes what it is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any, Any]] = []

    def put(self, path: str, body: Any, query: Any) -> dict[str, Any]:
        self.sent.append((path, body, query))
        return {}

    def delete(self, path: str, query: Any) -> dict[str, Any]:
        self.sent.append((path, None, query))
        return {}


def test_an_address_is_set_or_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    api = AddressApi()
    monkeypatch.setattr(verbs, "api", lambda data: api)
    verbs.mail("ada", "ada@example.org", "vision")
    verbs.mail("ada", remove=True)
    path = "/v1/users/ada/mail"
    assert api.sent == [
        (path, {"address": "ada@example.org"}, {"tenant": "vision"}),
        (path, None, {"tenant": None}),
    ]
    for address, remove in ((None, False), ("ada@example.org", True)):
        with pytest.raises(BadInput, match="ADDRESS and --remove"):
            verbs.mail("ada", address, remove=remove)
