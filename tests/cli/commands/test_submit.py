"""The body that `berth submit` sends, over a real socket."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.text.times import now_ms
from shared.contracts.failures import ADVICE
from shared.contracts.job_spec import JobSpec
from tests.serving import Quiet, serving


class Gateway(Quiet):
    """Keeps the body of the last submission."""

    body: dict[str, object] = {}
    start: dict[str, object] | None = None

    def do_POST(self) -> None:
        Gateway.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.answer(
            200, json.dumps({"command_id": "c", "job_ids": ["j"], "start": self.start}).encode()
        )


def submitted(monkeypatch: pytest.MonkeyPatch, *flags: str) -> JobSpec:
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        ran = CliRunner().invoke(app, ["submit", *flags, "--", "python", "train.py"])
    assert ran.exit_code == 0, ran.output
    return JobSpec.model_validate(Gateway.body["spec"])


def test_the_start_of_the_last_job_alike_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    soon = now_ms() + 60_000
    times = {"p10_at": soon, "p50_at": soon + 1_000, "p90_at": soon + 60_000}
    start = {"of": "queue", "at": 1, **times, "coverage": 0.79, "samples": 40}
    monkeypatch.setattr(Gateway, "start", start)
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        ran = CliRunner().invoke(app, ["submit", "--", "true"])
    assert ran.stdout.split() == ["j"], "the ids alone, for scripts"
    assert "with 80 %" in ran.stderr and "79% of the pool's last 40 intervals held" in ran.stderr


def test_memory_cores_and_variables_of_a_worker_are_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ["--mem", "64", "--cpus", "8", "--gpus", "2", "--env", "A=1", "--env", "B=x=y"]
    spec = submitted(monkeypatch, *flags)
    gang = spec.gang
    assert (gang.mem_gib_per_worker, gang.cpus_per_worker, gang.gpus_per_worker) == (64, 8, 2)
    assert spec.env == {"A": "1", "B": "x=y"}


def test_the_help_states_the_default_of_each_resource() -> None:
    shown = " ".join(CliRunner().invoke(app, ["submit", "--help"]).stdout.split())
    gang = JobSpec(name="x").gang
    assert f"in GiB; {gang.mem_gib_per_worker:g} if not given" in shown
    assert f"cores per worker; {gang.cpus_per_worker:g} if not given" in shown


def test_the_advice_about_memory_names_the_flag() -> None:
    help_text = CliRunner().invoke(app, ["submit", "--help"]).stdout
    assert "--mem GIB" in ADVICE["out_of_memory"]
    assert "--mem" in help_text
