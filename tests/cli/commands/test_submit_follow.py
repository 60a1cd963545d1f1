"""`berth submit --follow`: states and output of a job as they come, over a real socket."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from cli.api.http import Json
from cli.main import app
from tests.serving import Quiet, serving

LOGS = "/v1/jobs/j/logs"


class Gateway(Quiet):
    """Accepts each submission as the job `j`, which ends as the test says."""

    job_ids: ClassVar[list[str]] = ["j"]
    job: ClassVar[Json] = {}
    stream: ClassVar[bytes] = b""
    is_interrupted: ClassVar[bool] = False
    posts: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.received()
        self.posts.append(self.path)
        receipt = {"command_id": "c", "job_id": "j", "job_ids": self.job_ids}
        self.answer(202, json.dumps(receipt).encode())

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if self.is_interrupted and path != "/v1/commands/c":
            os.kill(os.getpid(), signal.SIGINT)
        if path == LOGS:
            self.answer(200, self.stream)
        elif path == "/v1/commands/c":
            self.answer(200, b'{"accepted": true}')
        else:
            self.answer(200, json.dumps(self.job).encode())


@pytest.fixture(autouse=True)
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Gateway, "posts", [])
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        yield


def frame(event: str, **data: object) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


def status(phase: str, attempt: int, reason: str = "") -> bytes:
    return frame("status", phase=phase, attempt=attempt, reason=reason)


RUN = b"".join(
    (
        status("waiting", 0, "no_capacity"),
        status("placed", 1),
        status("running", 1),
        frame("line", attempt=1, rank=0, line=0, text="hello"),
        frame("end", reason="ended"),
    )
)


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ({"phase": "succeeded", "exit_code": 0}, 0),
        ({"phase": "failed", "exit_code": 7}, 7),
        ({"phase": "cancelled", "exit_code": None}, 1),
    ],
)
def test_states_and_output_are_shown_and_the_exit_status_is_the_jobs(
    monkeypatch: pytest.MonkeyPatch, job: Json, code: int
) -> None:
    monkeypatch.setattr(Gateway, "job", job)
    monkeypatch.setattr(Gateway, "stream", RUN)
    ran = CliRunner().invoke(app, ["submit", "--follow", "--", "true"])
    assert (ran.exit_code, ran.stdout) == (code, "[1/0] hello\n"), ran.output
    assert ran.stderr.splitlines() == [
        "submitted: j",
        "the job waits: too few GPUs are free",
        "attempt 1 starts",
        "attempt 1 runs",
        f"j: {job['phase']}",
    ]


def test_the_end_of_a_simulated_job_is_marked_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gateway, "job", {"phase": "succeeded", "backend": "virtual"})
    monkeypatch.setattr(Gateway, "stream", RUN)
    mark = "j: nodes: virtual (simulated GPUs)"
    for words in (["--follow"], ["--wait"]):
        ran = CliRunner().invoke(app, ["submit", *words, "--", "true"])
        assert ran.exit_code == 0 and mark in ran.stderr.splitlines(), ran.output
        assert "virtual" not in ran.stdout


def test_what_is_printed_as_json_is_one_document_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gateway, "job", {"phase": "succeeded"})
    monkeypatch.setattr(Gateway, "stream", RUN)
    ran = CliRunner().invoke(app, ["submit", "--follow", "--json", "--", "true"])
    line, end = map(json.loads, ran.stdout.splitlines())
    assert line["text"] == "hello" and end["jobs"] == {"j": "succeeded"}


@pytest.mark.parametrize(
    ("words", "job_ids", "line"),
    [
        ("--follow", ["j"], "detached, the job goes on: `berth logs -f j` follows it again"),
        ("--wait", ["j"], "detached, the job goes on: `berth logs -f j` follows it again"),
        (
            "--wait --array 2",
            ["j.0", "j.1"],
            "detached, the jobs go on: `berth jobs --array j` lists them",
        ),
    ],
)
def test_an_interrupt_detaches_and_says_how_to_come_back(
    monkeypatch: pytest.MonkeyPatch, words: str, job_ids: list[str], line: str
) -> None:
    monkeypatch.setattr(Gateway, "is_interrupted", True)
    monkeypatch.setattr(Gateway, "job_ids", job_ids)
    monkeypatch.setattr(Gateway, "job", {"phase": "running"})
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ran = CliRunner().invoke(app, ["submit", *words.split(), "--", "true"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.exit_code == 130, ran.output
    assert ran.stderr.splitlines()[-1] == line
    assert Gateway.posts == ["/v1/jobs"], "nothing cancels the job"


def test_an_array_is_not_followed() -> None:
    ran = CliRunner().invoke(app, ["submit", "--follow", "--array", "3", "--", "true"])
    assert "--follow shows one job" in str(ran.exception)
    assert Gateway.posts == []
