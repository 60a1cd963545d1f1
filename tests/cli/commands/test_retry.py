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
    """An array `a` of which jobs 1 and 3 have failed; the job `r` is refused."""

    failed: list[str] = ["a.3", "a.1"]

    def do_GET(self) -> None:
        if self.path.startswith("/v1/commands/"):
            self.answer(200, b'{"accepted": true}')
            return
        assert "array=a" in self.path and "phase=failed" in self.path
        self.answer(200, json.dumps({"items": [{"job_id": job} for job in self.failed]}).encode())

    def do_POST(self) -> None:
        self.received()
        job = self.path.split("/")[3]
        if job == "r":
            problem = {"reason": "job_not_ended", "detail": "phase: running"}
            self.answer(409, json.dumps(problem).encode())
            return
        self.answer(202, json.dumps({"command_id": "c", "job_id": f"{job}-again"}).encode())


@pytest.fixture(autouse=True)
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        yield


def test_a_job_and_the_failed_jobs_of_an_array_are_repeated() -> None:
    assert CliRunner().invoke(app, ["retry", "j"]).stdout == "j-again\n"
    assert CliRunner().invoke(app, ["retry", "a", "--failed"]).stdout == "a.1-again\na.3-again\n"
    tickets: list[Json] = json.loads(
        CliRunner().invoke(app, ["retry", "a", "--failed", "--json"]).stdout
    )
    assert [ticket["retry_of"] for ticket in tickets] == ["a.1", "a.3"]


def test_a_refusal_and_an_array_without_failures_are_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = CliRunner().invoke(app, ["retry", "r"])
    assert ran.exit_code and "job_not_ended: phase: running" in str(ran.exception)
    monkeypatch.setattr(Gateway, "failed", [])
    ran = CliRunner().invoke(app, ["retry", "a", "--failed"])
    assert "a: no job of this array has failed" in str(ran.exception)
