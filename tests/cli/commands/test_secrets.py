"""`berth secrets`: values come from a file, stdin or a prompt, and are printed nowhere."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from berth_client.calls import Call
from cli.commands import secrets as verbs
from cli.errors import BadInput, Refused
from shared.secrets.secret_keys import FILE, make_keys, read_keys

VALUE = "s3same-71"


def addressed(path: str, query: dict[str, Any]) -> str:
    """Return the address of a request, as its call has it."""
    return (
        f"{path}?{urlencode(named)}" if (named := Call[Any]("", path, query).parameters) else path
    )


class SecretsApi:
    """An API that notes what it is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.rotations: list[dict[str, Any]] = []

    def put(self, path: str, body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
        if "refused" in path:
            raise BadInput("value: too long")
        self.sent.append(("PUT", addressed(path, query), body))
        return {"tenant": "ada", "name": "db", "version": 3}

    def delete(self, path: str, query: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(("DELETE", addressed(path, query), None))
        return {}

    def pages(self, call: Call[Any], limit: int) -> list[dict[str, Any]]:
        assert call.path == "/v1/secrets"
        row = {"tenant": "ada", "name": "db", "version": 3, "set_at": 0, "set_by": "key:a"}
        return [{**row, "key_id": "k1"}]

    def post(self, path: str) -> dict[str, Any]:
        return self.rotations.pop(0)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> SecretsApi:
    api = SecretsApi()
    monkeypatch.setattr(verbs, "api", lambda data: api)
    return api


def test_a_value_comes_from_a_file_or_stdin_without_its_last_line_end(
    api: SecretsApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "value").write_text(f"{VALUE}\nmore\n\n")
    verbs.set_("db", from_file=tmp_path / "value")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{VALUE}\n"))
    verbs.set_("a/b", tenant="ada")
    assert api.sent == [
        ("PUT", "/v1/secrets/db", {"value": f"{VALUE}\nmore"}),
        ("PUT", "/v1/secrets/a%2Fb?tenant=ada", {"value": VALUE}),
    ]
    printed = capsys.readouterr()
    assert "ada/db: version 3\n" in printed.out and VALUE not in printed.out + printed.err


def test_on_a_terminal_it_is_typed_twice_without_an_echo(
    api: SecretsApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    typed = [VALUE, VALUE, VALUE, "other"]
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda prompt: typed.pop(0))
    verbs.set_("db")
    assert api.sent == [("PUT", "/v1/secrets/db", {"value": VALUE})]
    with pytest.raises(BadInput, match="differ"):
        verbs.set_("db")


def test_a_file_that_is_no_text_or_not_there_is_bad_input(api: SecretsApi, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, text in (("bytes", "not UTF-8"), ("gone", "No such file")):
        with pytest.raises(BadInput, match=text):
            verbs.set_("db", from_file=tmp_path / name)
    assert api.sent == []


def test_a_list_and_a_deletion(api: SecretsApi, capsys: pytest.CaptureFixture[str]) -> None:
    verbs.list_()
    assert "key:a" in capsys.readouterr().out
    verbs.delete("db", tenant="ada")
    assert api.sent == [("DELETE", "/v1/secrets/db?tenant=ada", None)]


def test_a_folder_of_an_earlier_release_is_imported_and_says_what_was_not(
    api: SecretsApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for tenant, name in (("ada", "db"), ("ada", "refused"), ("bob", "api")):
        (tmp_path / tenant).mkdir(exist_ok=True)
        (tmp_path / tenant / name).write_text(f"{VALUE}\n")
    with pytest.raises(Refused, match="1 of 3 files were not imported"):
        verbs.import_(tmp_path)
    assert [path for _, path, _ in api.sent] == [
        "/v1/secrets/db?tenant=ada",
        "/v1/secrets/api?tenant=bob",
    ]
    printed = capsys.readouterr()
    assert "ada/refused: value: too long" in printed.err and VALUE not in printed.err
    with pytest.raises(BadInput, match="no file TENANT/NAME"):
        verbs.import_(tmp_path / "ada")


def test_a_new_key_is_the_first_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_keys(tmp_path / FILE)
    [old] = read_keys(tmp_path / FILE)
    verbs.add_key(tmp_path / FILE, as_json=True)
    new = json.loads(capsys.readouterr().out)["key_id"]
    assert list(read_keys(tmp_path / FILE)) == [new, old]
    with pytest.raises(BadInput, match="No such file"):
        verbs.add_key(tmp_path / "gone")


def test_a_rotation_goes_on_until_nothing_is_left(
    api: SecretsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {"key_id": "k2", "rewrapped": 100, "left": 7, "lost": []}
    api.rotations = [first, {**first, "rewrapped": 7, "left": 0}]
    verbs.rotate()
    assert "k2: 107 secrets brought under it, 0 left" in capsys.readouterr().out
    api.rotations = [{**first, "rewrapped": 0, "left": 0, "lost": ["ada/db"]}]
    with pytest.raises(Refused, match="set them again: ada/db"):
        verbs.rotate()
