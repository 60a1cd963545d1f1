"""An API of objects with settings: of one object, which takes the settings that it is sent."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest

from cli.errors import NotFound
from shared.contracts.base import Command

VERSION = "5" * 16


class SettingsApi:
    """One object of a kind such as `pool`; `further` are fields of its row beside its settings."""

    def __init__(
        self, kind: str, name: str, settings: dict[str, Any], command: type[Command], **further: Any
    ) -> None:
        self.path = f"/v1/{kind}s"
        self.name = name
        self.settings = settings
        self.bodies: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self._command = command
        self._row = {kind: name, "partition": 1, "version": VERSION, **further}

    def get(self, path: str) -> dict[str, Any]:
        row = {**self._row, "settings": self.settings}
        if path == self.path:
            return {"items": [row]}
        if unquote(path) != f"{self.path}/{self.name}":
            raise NotFound("not_found")
        return row

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert path == self.path
        self.bodies.append(body)
        command = self._command.model_validate(body)
        self.settings = command.model_dump(mode="json", exclude={"if_version"})
        return {"command_id": "c"}

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert unquote(path) == f"{self.path}/{self.name}"
        self.bodies.append(body)
        named = {name: value for name, value in body.items() if name != "if_version"}
        fields = self._command.model_fields
        nulls = {name: fields[name].default for name, value in named.items() if value is None}
        self.settings = {**self.settings, **named, **nulls}
        return {"command_id": "c"}

    def delete(self, path: str) -> dict[str, Any]:
        self.deleted.append(path)
        return {"command_id": "c"}


def replace_api(monkeypatch: pytest.MonkeyPatch, verbs: ModuleType, api: SettingsApi) -> None:
    """Let the verbs of a module use this API, which answers at once."""
    monkeypatch.setattr(verbs, "api", lambda data: api)
    monkeypatch.setattr(verbs, "await_answer", lambda client, receipt: receipt)
