"""Identities of nodes as an operator gives, shows and ends them, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.api.http import Api
from cli.api.target import STACK_FILE, Target
from cli.commands.enrolment import join_line
from cli.main import app
from tests.cli.serving import Gateway
from tests.serving import serving

TOKEN = {
    "token_id": "t1",
    "pool": "gpu",
    "state": "valid",
    "approve": True,
    "uses": 2,
    "max_uses": 5,
    "expires_at": None,
}


@pytest.fixture(autouse=True)
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a gateway that knows the node n1, which joined with the token t1."""
    documents = {
        "/v1/nodes/tokens": {"items": [TOKEN]},
        "/v1/enrolments/n1": {"state": "approved", "token_id": "t1"},
        "/v1/commands/c": {"accepted": True},
    }
    monkeypatch.setattr(Gateway, "documents", documents)
    monkeypatch.setattr(Gateway, "receipt", {"command_id": "c", "token": "t1.secret"})
    monkeypatch.setattr(Gateway, "paths", [])
    with serving(Gateway) as address:
        monkeypatch.setenv("BERTH_URL", address)
        yield address


def berth(*words: str) -> str:
    ran = CliRunner().invoke(app, ["nodes", *words])
    assert ran.exit_code == 0, ran.exception
    return ran.output


@pytest.mark.parametrize(
    ("url", "ca", "end"),
    [
        ("https://10.0.0.5:8443", "/data/ca.crt", " --ca ca.crt (a copy of /data/ca.crt)"),
        ("https://berth.example", "", ""),
        ("http://127.0.0.1:8000", "", ""),
    ],
)
def test_the_command_names_the_ca_that_the_operator_trusts(url: str, ca: str, end: str) -> None:
    client = Api(Target(url, "a.b", ca))
    assert join_line(client) == f"berth-agent join {url} --token-file FILE{end}"


def test_a_token_is_shown_with_the_command_that_joins_by_it(url: str) -> None:
    hint = f"shown once; on the node: berth-agent join {url} --token-file FILE"
    then = "then here, for each node: berth nodes approve NODE"
    assert set(berth("token", "--pool", "gpu").splitlines()) == {hint, then, "t1.secret"}
    assert then not in berth("token", "--pool", "gpu", "--approve")
    assert json.loads(berth("token", "--pool", "gpu", "--json"))["token"] == "t1.secret"


@pytest.mark.parametrize(("broker", "ends"), [("embedded", True), ("kafka", False)])
def test_a_token_of_a_stack_in_memory_says_that_identities_end_with_it(
    url: str, tmp_path: Path, broker: str, ends: bool
) -> None:
    stack = {"gateway": url, "broker": broker}
    (tmp_path / STACK_FILE).write_text(json.dumps(stack))
    words = ("token", "--pool", "gpu", "--data", str(tmp_path))
    note = "the node's identity ends with this stack: its data is in memory"
    assert (note in berth(*words).splitlines()) == ends
    assert note not in berth(*words, "--json")


def test_tokens_are_listed_with_their_uses() -> None:
    row = berth("tokens").splitlines()[1]
    assert row.split()[:3] == ["t1", "gpu", "valid"] and "2 of 5" in row
    berth("tokens", "--ended")
    assert ["ended=true" in path for path in Gateway.paths] == [False, True]


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (("approve", "n1"), "n1: approved"),
        (("revoke", "n1"), "n1: revoked"),
        (("revoke-token", "t1"), "t1: revoked"),
        (("forget", "n1"), "n1: forgotten"),
    ],
)
def test_a_change_is_reported_with_the_id_and_its_state(
    words: tuple[str, ...], result: str
) -> None:
    assert berth(*words).splitlines()[0] == result


def test_a_revoked_node_names_the_token_that_could_bring_it_back() -> None:
    assert "it joined with token t1" in berth("revoke", "n1")
