"""`berth inject` sends the fault, and says what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from cli.commands import inject as commands
from cli.errors import NotFound
from cli.main import app


class InjectionApi:
    """Takes each command."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.duplicate = False

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.sent.append((path, body))
        return {"command_id": "c", "duplicate": self.duplicate}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> InjectionApi:
    api = InjectionApi()
    monkeypatch.setattr(commands, "api", lambda data: api)
    monkeypatch.setattr(commands, "await_answer", lambda client, receipt: receipt)
    return api


def berth(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("words", "body", "printed"),
    [
        ("slow --factor 2.5 --for 5m", {"fault": "slow", "factor": 2.5, "for_s": 300}, "slow 2.5x"),
        ("stop", {"fault": "stop", "for_s": 60}, "stop"),
        ("flap", {"fault": "flap", "factor": 2.0, "for_s": 60}, "flap 2x"),
        ("link --factor 4", {"fault": "link", "factor": 4.0, "for_s": 60}, "link 4x"),
    ],
)
def test_a_fault_is_sent(api: InjectionApi, words: str, body: dict[str, Any], printed: str) -> None:
    printed_line = berth("inject", *words.split(), "--node", "n1", "--reason", "drill")
    assert api.sent == [("/v1/nodes/n1/inject", {**body, "reason": "drill"})]
    assert printed_line.startswith(f"n1: {printed} for ")


def test_the_pool_is_named_where_the_read_models_cannot(api: InjectionApi) -> None:
    berth("inject", "stop", "--node", "n1", "--pool", "gpu")
    assert api.sent[0][1]["pool"] == "gpu"


@pytest.mark.parametrize(
    ("duplicate", "printed"),
    [(False, "n1: the injected fault is over\n"), (True, "n1: no fault was injected\n")],
)
def test_a_fault_is_ended(api: InjectionApi, duplicate: bool, printed: str) -> None:
    api.duplicate = duplicate
    assert berth("inject", "end", "--node", "n1") == printed
    assert api.sent == [("/v1/nodes/n1/end-injection", {"reason": ""})]


@pytest.mark.parametrize("verb", ["slow", "stop", "flap", "link", "end"])
def test_a_node_that_is_not_there_is_named(
    api: InjectionApi, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, body: object) -> None:
        raise NotFound("not_found: node not found")

    monkeypatch.setattr(api, "post", refuse)
    result = CliRunner().invoke(app, ["inject", verb, "--node", "nosuch"])
    assert str(result.exception) == "no such node: nosuch; `berth nodes` lists all"


def test_a_span_that_is_none_is_refused_before_anything_is_sent(api: InjectionApi) -> None:
    result = CliRunner().invoke(app, ["inject", "stop", "--node", "n1", "--for", "long"])
    assert result.exit_code != 0 and api.sent == []
