"""`berth users`: a user is the user of its keys, which never change."""

from __future__ import annotations

from typing import Any

import pytest

import cli.commands.users as verbs
from cli.errors import BadInput, NotFound

ADA = {
    "key_id": "k1",
    "tenant": "vision",
    "user": "ada",
    "role": "submitter",
    "pools": ["gpu"],
    "highest_class": None,
    "max_job_gpus": 4.0,
    "models": [],
}


class KeysApi:
    """Has the keys of one tenant, and notes what it is sent."""

    def __init__(self) -> None:
        self.rows = [dict(ADA), {**ADA, "key_id": "k2", "user": None}]
        self.sent: list[tuple[str, Any]] = []

    def get(self, path: str, query: dict[str, Any]) -> dict[str, Any]:
        return {"items": self.rows, "next": None}

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.sent.append((path, body))
        return {"command_id": "c", "key": "shown.once"}

    def delete(self, path: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
        if path.endswith("/mail"):
            raise NotFound("no such address")
        self.sent.append((path, None))
        return {"command_id": "c"}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> KeysApi:
    api = KeysApi()
    monkeypatch.setattr(verbs, "api", lambda data: api)
    monkeypatch.setattr(verbs, "await_answer", lambda client, receipt: receipt)
    return api


def test_keys_without_a_user_are_not_listed(
    api: KeysApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.list_()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["USER", "ada"]


def test_a_new_user_gets_a_key_with_its_bounds(
    api: KeysApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.create("bob", "vision", role="viewer", max_job_gpus=2)
    body = {"user": "bob", "role": "viewer", "max_job_gpus": 2}
    assert api.sent == [("/v1/tenants/vision/keys", body)]
    assert capsys.readouterr().out.splitlines()[-1] == "shown.once"
    with pytest.raises(BadInput, match="the user exists: ada of vision"):
        verbs.create("ada", "vision")


def test_other_bounds_are_those_of_a_new_key_and_the_old_one_ends(api: KeysApi) -> None:
    verbs.set_("ada", "vision", max_job_gpus=8)
    body = {"user": "ada", "role": "submitter", "pools": ["gpu"], "max_job_gpus": 8}
    assert api.sent == [("/v1/tenants/vision/keys", body), ("/v1/keys/k1", None)]
    api.rows.append({**ADA, "key_id": "k3"})
    with pytest.raises(BadInput, match="ada has several keys: k1, k3"):
        verbs.set_("ada", "vision", max_job_gpus=8)


def test_a_deleted_user_has_no_key(api: KeysApi) -> None:
    verbs.delete("ada", "vision")
    assert api.sent == [("/v1/keys/k1", None)]
    with pytest.raises(NotFound, match="no such user: eve of vision"):
        verbs.delete("eve", "vision")


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
