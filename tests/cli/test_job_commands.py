"""Jobs that have ended or never started, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import HTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from cli.http_api import Json
from cli.main import app
from tests.cli.serving import Quiet, serving


class Gateway(Quiet):
    """Answers a GET with the document of its path, and notes the paths of commands."""

    documents: ClassVar[dict[str, Json]] = {}
    commands: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        document = self.documents.get(urlsplit(self.path).path)
        body = json.dumps(document or {"reason": "not_found"}).encode()
        self.answer(404 if document is None else 200, body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.commands.append(self.path)
        self.answer(202, b'{"command_id": "c"}')


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Json]]:
    """Return the documents that the gateway of `berth` has, to be filled by the test."""
    monkeypatch.setattr(Gateway, "documents", {})
    monkeypatch.setattr(Gateway, "commands", [])
    with serving(HTTPServer(("127.0.0.1", 0), Gateway)) as url:
        monkeypatch.setenv("BERTH_URL", url)
        yield Gateway.documents


def berth(*words: str) -> str:
    ran = CliRunner().invoke(app, [*words])
    assert ran.exit_code == 0, ran.exception
    return ran.output


def test_a_job_that_has_ended_is_not_cancelled_again(documents: dict[str, Json]) -> None:
    documents["/v1/jobs/j"] = {"phase": "succeeded"}
    assert berth("cancel", "j") == "j has ended already: succeeded\n"
    assert Gateway.commands == []


@pytest.mark.parametrize("document", [{"phase": "running"}, None])
def test_a_running_job_and_an_array_are_cancelled(
    documents: dict[str, Json], document: Json | None
) -> None:
    if document:
        documents["/v1/jobs/j"] = document
    assert berth("cancel", "j") == "j cancellation requested\n"
    assert Gateway.commands == ["/v1/jobs/j/cancel"]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            {"phase": "waiting", "started_at": 0},
            "no output: the job has not started, phase waiting; see `berth why JOB`\n",
        ),
        ({"phase": "succeeded", "started_at": 5}, "no output\n"),
    ],
)
def test_a_job_without_output_has_a_reason(
    documents: dict[str, Json], document: Json, text: str
) -> None:
    documents["/v1/jobs/j/logs"] = {"lines": []}
    documents["/v1/jobs/j"] = document
    assert berth("logs", "j") == text


@pytest.mark.parametrize(
    ("group", "empty"), [("dead", "no rejected records\n"), ("faults", "no slow workers\n")]
)
def test_a_group_of_records_without_a_verb_is_listed(
    documents: dict[str, Json], group: str, empty: str
) -> None:
    documents[f"/v1/{group}"] = {"items": []}
    assert berth(group) == empty
