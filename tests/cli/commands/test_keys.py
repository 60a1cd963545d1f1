"""`berth keys list` reads one address, with the tenant as a filter."""

from __future__ import annotations

from typing import Any

import pytest

import cli.commands.keys as verb


class KeysApi:
    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def get(self, path: str, query: dict[str, Any]) -> dict[str, Any]:
        self.requests.append((path, query))
        return {"items": [{"key_id": "k"}], "next": None}


def test_keys_are_filtered_by_tenant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api = KeysApi()
    monkeypatch.setattr(verb, "api", lambda data: api)
    verb.list_(as_json=True)
    verb.list_("ada", as_json=True)
    assert api.requests == [("/v1/keys", {"tenant": None}), ("/v1/keys", {"tenant": "ada"})]
    assert capsys.readouterr().out.count('"key_id"') == 2
