from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cli.api.http import Json
from cli.main import app
from tests.serving import Quiet, serving

BEARER: Json = {
    "principal": "key:ada-1",
    "role": "submitter",
    "tenant": "ada",
    "models": [],
    "may": {"highest_class": "high", "pools": ["gpu", "cpu"]},
    "expires_at": None,
    "installation": "0123456789ab",
}


class Gateway(Quiet):
    def do_GET(self) -> None:
        assert self.path == "/v1/whoami"
        self.answer(200, json.dumps(BEARER).encode())


def test_the_address_and_the_bearer_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        plain = CliRunner().invoke(app, ["whoami"]).output
        as_json = CliRunner().invoke(app, ["whoami", "--json"]).output
    assert json.loads(as_json) == {"url": url, **BEARER}
    rows = [line.split() for line in plain.splitlines()]
    assert ["principal", "key:ada-1"] in rows
    assert ["tenant", "ada"] in rows
    assert ["highest_class", "high"] in rows
    assert ["pools", "gpu,", "cpu"] in rows


def test_an_operator_without_bounds_has_no_row_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BEARER, "may", None)
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        plain = CliRunner().invoke(app, ["whoami"]).output
        as_json = CliRunner().invoke(app, ["whoami", "--json"]).output
    assert "may" not in plain.split()
    assert json.loads(as_json)["may"] is None
