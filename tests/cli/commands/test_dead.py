"""The inputs that wait for an operator are listed, with how the others were settled."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner, Result

from cli.api.http import Json
from cli.commands import dead as dead_commands
from cli.main import app
from tests.cli.serving import Gateway
from tests.serving import serving

ID = "placement/0/4/0"
PATH = f"/v1/dead/{ID.replace('/', '%2F')}"


def row(state: str, reason: str = "") -> Json:
    return {
        "dead_id": ID,
        "topic": "reports",
        "partition": 0,
        "log_offset": 9,
        "reason": "KeyError: 'x'",
        "at": 0,
        "state": state,
        "settled": state not in ("rejected", "open", "retrying"),
        "decision_reason": reason,
    }


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Json]]:
    """The documents of a gateway that accepts every command."""
    documents: dict[str, Json] = {"/v1/commands/c": {"accepted": True}}
    monkeypatch.setattr(Gateway, "documents", documents)
    monkeypatch.setattr(Gateway, "paths", [])
    monkeypatch.setattr(dead_commands, "RETRY_S", 0.0)
    with serving(Gateway) as address:
        monkeypatch.setenv("BERTH_URL", address)
        yield documents


def berth(*words: str) -> Result:
    return CliRunner().invoke(app, ["dead", *words])


@pytest.mark.parametrize(
    ("state", "reason", "shown"),
    [
        ("open", "", "open"),
        ("rejected", "", "rejected"),
        ("retrying", "", "waits for its lane"),
        ("skipped", "sent again", "skipped: sent again"),
        ("raised_again", "", "raised again"),
        ("not_retained", "", "not decided, bytes gone"),
    ],
)
def test_the_list_has_a_state_in_words(
    documents: dict[str, Json], state: str, reason: str, shown: str
) -> None:
    documents["/v1/dead"] = {"items": [row(state, reason)]}
    line = berth("list").output.splitlines()[1]
    assert f"  {shown}  " in line and "reports/0/9" in line


@pytest.mark.parametrize(("words", "settled"), [(["list"], []), (["list", "--all"], ["true"])])
def test_settled_inputs_are_listed_on_request(
    documents: dict[str, Json], words: list[str], settled: list[str]
) -> None:
    documents["/v1/dead"] = {"items": []}
    assert berth(*words).output.startswith("no rejected records")
    assert parse_qs(urlsplit(Gateway.paths[-1]).query).get("settled", []) == settled


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [
        ("retried", 0, "retried"),
        ("retrying", 0, "to be retried: its lane has not decided yet"),
        ("raised_again", 1, "raised again; `berth dead list` has it under another id"),
        ("not_retained", 1, "not decided, its bytes are no longer retained: send it again"),
    ],
)
def test_a_retry_ends_with_what_became_of_the_input(
    documents: dict[str, Json], state: str, code: int, text: str
) -> None:
    documents[PATH] = row(state)
    ran = berth("retry", ID)
    text_shown = ran.output if code == 0 else str(ran.exception)
    assert f"{ID}: {text}" in text_shown and (ran.exit_code != 0) == (code != 0)


def test_only_a_quarantined_input_is_skipped(documents: dict[str, Json]) -> None:
    documents[PATH] = row("rejected")
    assert "only a quarantined input is skipped" in str(
        berth("skip", ID, "--reason", "x").exception
    )
    documents[PATH] = row("open")
    assert berth("skip", ID, "--reason", "x").output == f"{ID}: skipped\n"
