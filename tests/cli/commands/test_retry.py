"""`berth retry`: a job, or the failed ones of an array, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from cli.api.http import Json
from cli.main import app
from tests.serving import Quiet, serving


class Gateway(Quiet):
    """An array `a` of which jobs 1 and 3 have failed; the job `r` is refused.

    A job whose key it has seen before is a duplicate. It is busy for the first `busy` requests.
    """

    failed: list[str] = ["a.3", "a.1"]
    keys: set[str]
    busy: int

    def do_GET(self) -> None:
        if self.path.startswith("/v1/commands/"):
            self.answer(
                200, json.dumps({"accepted": True, "duplicate": "dup" in self.path}).encode()
            )
            return
        assert "array=a" in self.path and "phase=failed" in self.path
        rows = [{"job_id": job, "attempt": 2} for job in self.failed]
        self.answer(200, json.dumps({"items": rows}).encode())

    def do_POST(self) -> None:
        body, job = json.loads(self.received()), self.path.split("/")[3]
        if self.busy:
            type(self).busy -= 1
            self.send_response(429)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if job == "r":
            problem = {"reason": "job_not_ended", "detail": "phase: running"}
            self.answer(409, json.dumps(problem).encode())
            return
        key = f"{job} {body.get('idempotency_key')}"
        command = "dup" if key in self.keys else "c"
        self.keys.add(key)
        self.answer(202, json.dumps({"command_id": command, "job_id": f"{job}-again"}).encode())


@pytest.fixture(autouse=True)
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Gateway, "keys", set[str](), raising=False)
    monkeypatch.setattr(Gateway, "busy", 0, raising=False)
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        yield


def test_a_job_and_the_failed_jobs_of_an_array_are_repeated() -> None:
    assert CliRunner().invoke(app, ["retry", "j"]).stdout == "j-again\n"
    ran = CliRunner().invoke(app, ["retry", "a", "--failed"])
    assert (ran.stdout, ran.stderr) == ("a.1-again\na.3-again\n", "")
    assert Gateway.keys == {"j None", "a.1 attempt-2", "a.3 attempt-2"}
    tickets: list[Json] = json.loads(
        CliRunner().invoke(app, ["retry", "a", "--failed", "--json"]).stdout
    )
    assert [ticket["retry_of"] for ticket in tickets] == ["a.1", "a.3"]


def test_failed_jobs_are_submitted_once_and_all_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    CliRunner().invoke(app, ["retry", "a", "--failed"])
    monkeypatch.setattr(Gateway, "failed", ["r", "a.1"])
    ran = CliRunner().invoke(app, ["retry", "a", "--failed"])
    assert ran.stdout == "a.1-again\n" and "submitted before: a.1-again" in ran.stderr
    assert ran.exit_code and str(ran.exception) == "r: job_not_ended: phase: running"


def test_a_busy_gateway_is_tried_again_after_the_time_that_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Gateway, "busy", 2)
    assert CliRunner().invoke(app, ["retry", "j"]).stdout == "j-again\n"


def test_a_refusal_and_an_array_without_failures_are_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = CliRunner().invoke(app, ["retry", "r"])
    assert ran.exit_code and "job_not_ended: phase: running" in str(ran.exception)
    monkeypatch.setattr(Gateway, "failed", [])
    ran = CliRunner().invoke(app, ["retry", "a", "--failed"])
    assert "a: no job of this array has failed" in str(ran.exception)
