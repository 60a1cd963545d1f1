"""The body that `berth submit` sends, over a real socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from berth_client.frameworks import torchrun_command
from cli.api import answers
from cli.errors import BadInput, Refused
from cli.main import app
from cli.text.times import now_ms
from shared.contracts.failures import ADVICE
from shared.contracts.job_spec import Elastic, Gang, JobSpec, Retry
from tests.serving import Quiet, serving

DECISION = "/v1/commands/c"


class Gateway(Quiet):
    """Keeps the body of the last submission; decides it after so many reads of its decision."""

    body: dict[str, object] = {}
    start: dict[str, object] | None = None
    decision: dict[str, object] = {"accepted": True}
    reads_before: int | None = 0
    reads: list[str] = []

    def do_GET(self) -> None:
        Gateway.reads.append(self.path)
        if self.path != DECISION or self.reads_before is None:
            self.answer(503)
        elif len(self.reads) <= self.reads_before:
            self.answer(404)
        else:
            self.answer(200, json.dumps(self.decision).encode())

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


REFUSED = {
    "accepted": False,
    "type": "job.submit.v1",
    "reason": "infeasible",
    "detail": "gang.workers: 1: the pool's nodes, 1, could hold 0 workers of 8 GPUs each",
}


def decided(
    monkeypatch: pytest.MonkeyPatch, reads_before: int | None, decision: dict[str, object]
) -> Result:
    monkeypatch.setattr(Gateway, "decision", decision)
    monkeypatch.setattr(Gateway, "reads_before", reads_before)
    monkeypatch.setattr(Gateway, "reads", [])
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        return CliRunner().invoke(app, ["submit", "--gpus", "8", "--", "true"])


def test_a_submission_that_is_refused_at_once_ends_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = decided(monkeypatch, 2, REFUSED)
    error = ran.exception
    assert isinstance(error, Refused) and not ran.stdout
    assert str(error).startswith(f"job.submit.v1: infeasible: {REFUSED['detail']}; to do: request")
    assert Gateway.reads == 3 * [DECISION]


@pytest.mark.parametrize("reads_before", [1, None], ids=["accepted", "unreadable"])
def test_a_submission_that_is_not_refused_prints_its_id(
    monkeypatch: pytest.MonkeyPatch, reads_before: int | None
) -> None:
    ran = decided(monkeypatch, reads_before, {"accepted": True})
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "j\n", ""), ran.output


def test_a_submission_without_a_decision_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "REFUSAL_S", 0.2)
    ran = decided(monkeypatch, 1_000_000, REFUSED)
    assert (ran.exit_code, ran.stdout) == (0, "j\n"), ran.output


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


def test_an_estimate_that_ends_within_a_second_is_not_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Gateway, "start", {"of": "queue", "p90_at": now_ms() + 500})
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        ran = CliRunner().invoke(app, ["submit", "--", "true"])
    assert (ran.stdout, ran.stderr) == ("j\n", ""), ran.output


def test_memory_cores_and_variables_of_a_worker_are_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ["--mem", "64", "--cpus", "8", "--gpus", "2", "--env", "A=1", "--env", "B=x=y"]
    spec = submitted(monkeypatch, *flags)
    gang = spec.gang
    assert (gang.mem_gib_per_worker, gang.cpus_per_worker, gang.gpus_per_worker) == (64, 8, 2)
    assert spec.env == {"A": "1", "B": "x=y"}


def test_memory_and_walltime_may_have_units(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = submitted(monkeypatch, "--mem", "512M", "--walltime", "1.5h")
    assert (spec.gang.mem_gib_per_worker, spec.walltime_s) == (0.5, 5400)
    ran = CliRunner().invoke(app, ["submit", "--walltime", "1:30:00", "--", "true"])
    assert "--walltime: '1:30:00'; seconds, or a number with s, m, h or d" in str(ran.exception)


def test_state_changes_to_mail_are_named_as_slurm_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = submitted(monkeypatch, "--notify", "fail,preempt")
    assert spec.notify == ("failed", "preempted", "rejected")
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        ran = CliRunner().invoke(app, ["submit", "--notify", "done", "--", "true"])
    assert ran.exit_code and "--notify: 'done'" in str(ran.exception)


def test_a_launcher_starts_the_command_and_the_job_keeps_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = submitted(monkeypatch, "--framework", "torchrun", "--gpus", "2")
    assert spec.name == "python"
    assert spec.command == tuple(torchrun_command(["python", "train.py"], 2))
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        ran = CliRunner().invoke(app, ["submit", "--framework", "horovod", "--", "train.py"])
    assert ran.exit_code and "--framework: 'horovod'" in str(ran.exception)


def test_the_help_states_the_default_of_each_resource() -> None:
    shown = " ".join(CliRunner().invoke(app, ["submit", "--help"]).stdout.split())
    gang = JobSpec(name="x").gang
    assert f"in GiB; {gang.mem_gib_per_worker:g} if not given" in shown
    assert f"cores per worker; {gang.cpus_per_worker:g} if not given" in shown


def test_the_advice_about_memory_names_the_flag() -> None:
    help_text = CliRunner().invoke(app, ["submit", "--help"]).stdout
    assert "--mem GIB" in ADVICE["out_of_memory"]
    assert "--mem" in help_text


def test_every_field_of_a_spec_is_submitted_from_a_file_and_options_override_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gang = Gang(workers=2, gpus_per_worker=2)
    spec = JobSpec(
        name="x",
        command=("false",),
        gang=gang,
        env={"A": "1", "B": "2"},
        elastic=Elastic(min_workers=1, max_workers=4),
        retry=Retry(max_attempts=3),
        gpu_speeds={"a100": 2.0},
        preemptible=False,
        grace_s=9,
    )
    job = tmp_path / "job.yaml"
    job.write_text(yaml.safe_dump({"tenant": "ada", "spec": spec.model_dump(mode="json")}))
    flags = ["-f", str(job), "--gpus", "4", "--env", "B=3"]
    expected = {
        "command": ("python", "train.py"),
        "gang": gang.model_copy(update={"gpus_per_worker": 4}),
        "env": {"A": "1", "B": "3"},
    }
    assert submitted(monkeypatch, *flags) == spec.model_copy(update=expected)
    assert Gateway.body["tenant"] == "ada"
    assert cast_spec(Gateway.body).keys() == JobSpec.model_fields.keys()


@pytest.mark.parametrize(
    ("array", "first", "at_once"), [("100", None, None), ("5-6", 5, None), ("9%2", None, 2)]
)
def test_an_array_of_the_command_line_replaces_that_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, array: str, first: int | None, at_once: int
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("{array_size: 4, name: x, array_first: 7, array_at_once: 3}")
    submitted(monkeypatch, "-f", str(job), "--array", array)
    spec = cast_spec(Gateway.body)
    assert (spec.get("array_first"), spec.get("array_at_once")) == (first, at_once)
    assert Gateway.body["array_size"] == {"100": 100, "5-6": 2, "9%2": 9}[array]


def cast_spec(body: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = body["spec"]
    return spec


@pytest.mark.parametrize(
    "text", ['{"name": "x", "command": ["true"]}', "name: x\ncommand: ['true']"]
)
def test_a_job_is_read_from_stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        ran = CliRunner().invoke(app, ["submit", "-f", "-"], input=text)
    assert ran.exit_code == 0, ran.output
    assert cast_spec(Gateway.body)["name"] == "x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("command: 5", "command: '5'; a list of texts is allowed"),
        ("command: {a: b}", "a list of texts is allowed"),
        ("command: [sleep, 60]", "a list of texts is allowed"),
        ("command: python train.py", 'as ["sleep", "60"]'),
        ("commnad: [a]\nworkdir: /data", "no command given beside commnad, workdir; use -f"),
        ("gang: {workers: 2}", "no command given; use -f"),
    ],
)
def test_a_job_file_without_a_command_is_refused_with_the_fields_that_it_has(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "job.yaml").write_text(text)
    ran = CliRunner().invoke(app, ["submit", "-f", str(tmp_path / "job.yaml")])
    assert isinstance(ran.exception, BadInput) and words in str(ran.exception)
