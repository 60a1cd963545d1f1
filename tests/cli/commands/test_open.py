"""A recorded simulation behind the real gateway: every reading command works, no change is let in.

One stack for the whole file, started as a user starts it and ended by Ctrl-C.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.errors import BadInput, CliError, Refused
from cli.main import app
from infra.supervisor import supervise
from simulator.engine import recording
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

UNTIL_S = 60_000
"""Some jobs have ended by then, and some wait."""
SIMULATE = (
    "simulate",
    "--jobs",
    "150",
    "--nodes",
    "4",
    "--load",
    "1.1",
    "--last-share",
    "1",
    "--policy",
    "srsf",
    "--preemption",
    "ranked",
    "--large-gang-share",
    "1",
)
RECORDED = "recorded simulation"


def berth(*words: object) -> str:
    """Run a command in this process and return its output. Raises its error."""
    ran = CliRunner().invoke(app, [str(word) for word in words])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened simulation: printed document, recording directory, data directory."""

    process: subprocess.Popen[str]
    document: dict[str, Any]
    folder: Path
    data: Path

    def read(self, *words: object) -> Any:
        return json.loads(berth(*words, "--json", "--data", self.data))

    def refused(self, *words: object) -> str:
        with pytest.raises(CliError) as error:
            berth(*words, "--data", self.data)
        assert isinstance(error.value, Refused), error.value
        return str(error.value)

    def asked(self, method: str, path: str, key: str) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        body = None if method == "GET" else b"{}"
        request = urllib.request.Request(self.document["api"] + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def submitted(self) -> int:
        """Commands of the recording that were sent by the moment that is shown."""
        recorded = recording.open_recording(self.folder)
        commands = next(file for file in recorded.files if file.topic == "commands")
        until_ms = recorded.moment_ms(UNTIL_S)
        return sum(1 for _ in recording.read_values(self.folder, commands, until_ms))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder = tmp_path_factory.mktemp("simulated")
    data = tmp_path_factory.mktemp("opened")
    berth(*SIMULATE, "--out", folder)
    command = [
        sys.executable,
        "-m",
        "cli",
        "open",
        str(folder),
        "--data",
        str(data),
        "--until",
        str(UNTIL_S),
        "--json",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c
    ) as process:
        try:
            assert process.stdout is not None
            yield Opened(process, json.loads(process.stdout.readline()), folder, data)
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)
            assert not supervise.is_running(data)
        finally:
            process.kill()
            supervise.down(data)


def heed_ctrl_c() -> None:
    """A shell has what it starts in the background ignore it, and so would all that is below."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_the_jobs_of_that_moment_are_listed_and_those_in_line_are_the_queue(opened: Opened) -> None:
    jobs = opened.read("jobs", "--limit", 1000)
    assert len(jobs) == opened.submitted() > 0
    waiting = {job["job_id"] for job in jobs if job["phase"] == "waiting"}
    queue = opened.read("queue")
    assert {row["job_id"] for row in queue} == waiting != set()
    assert [row["position"] for row in queue] == list(range(1, len(queue) + 1))
    assert opened.document["waited_longest"] in waiting
    assert opened.document["jobs"] == Counter(job["phase"] for job in jobs)
    held = sum(job["gpus"] for job in jobs if job["phase"] in ("placed", "running", "stopping"))
    used = sum(sum(node["used_milli"]) for node in opened.read("nodes")) / 1000
    assert used == held > 0


def test_running_jobs_have_run_until_the_moment_that_is_shown(opened: Opened) -> None:
    recorded = recording.open_recording(opened.folder)
    jobs = opened.read("jobs", "--limit", 1000)
    moments = {row["as_of"] for row in [*jobs, *opened.read("nodes")]}
    assert moments == {recorded.moment_ms(UNTIL_S)}
    why = opened.read("why", opened.document["waited_longest"])
    assert why["as_of"] == recorded.moment_ms(UNTIL_S)
    assert any(job["phase"] == "running" for job in jobs)


def test_why_a_simulated_job_waits_has_reasons_numbers_and_its_queue_position(
    opened: Opened,
) -> None:
    document = opened.read("why", opened.document["waited_longest"])
    reasons = [row["data"]["reason"] for row in document["items"] if row["type"] == "job.held.v1"]
    assert "no_capacity" in reasons
    assert document["line"]["base_policy"] == "srsf"
    assert document["line"]["position"] > 0
    assert document["placing"] is None
    shown = berth("why", opened.document["waited_longest"], "--data", opened.data)
    assert "too few GPUs are free; position" in shown
    assert "in the queue, by srsf, run times from history: score" in shown


def test_why_a_job_was_placed_names_the_terms_that_decided(opened: Opened) -> None:
    ended = next(j for j in opened.read("jobs", "--phase", "succeeded") if j["nodes"])
    document = opened.read("why", ended["job_id"])
    assert document["placing"]["policy"] == "srsf+best_fit"
    assert document["placing"]["score"] < 0
    assert {"position", "waiting", "nodes"} <= document["placing"]["terms"].keys()


def test_every_command_is_refused_and_says_why(opened: Opened) -> None:
    """Whatever the API has that is no GET, as its own document lists it; spans are no command.

    Nodes have credentials of their own, so their paths do not look at a key.
    """
    status, document = opened.asked("GET", "/openapi.json", "")
    assert status == 200
    writes = [
        (method.upper(), path.replace("{", "").replace("}", ""))
        for path, operations in document["paths"].items()
        for method in operations
        if method != "get" and path != "/v1/traces"
    ]
    assert len(writes) > 12
    key = (opened.data / "operator.key").read_text().strip()
    for method, path in writes:
        status, problem = opened.asked(method, path, key)
        assert (status, problem["reason"]) == (409, "recorded_simulation"), (method, path, problem)
        assert RECORDED in problem["detail"]
        unknown_key = 409 if path.startswith("/agent/") else 401
        assert opened.asked(method, path, "no.key")[0] == unknown_key, (method, path)


def test_commands_of_the_command_line_are_refused_wherever_they_would_go(opened: Opened) -> None:
    job = opened.document["waited_longest"]
    for words in (
        ("submit", "--tenant", "vision", "true"),
        ("cancel", job),
        ("drain", "n0"),
        ("access", "bootstrap", "--again"),
        ("replay", "synthetic", "--pool", "simulated"),
    ):
        assert RECORDED in opened.refused(*words), words


def test_verify_holds_every_promise_after_all_that_was_tried(opened: Opened) -> None:
    """The read models too, and nothing was added to what was recorded."""
    result = opened.read("verify")
    assert (result["verify"], result["violations"]) == ("ok", [])
    assert "read models equal the fold" in result["rules"]
    assert result["counts"]["commands"] == opened.submitted()


def test_the_page_of_metrics_has_both_services(opened: Opened) -> None:
    with urllib.request.urlopen(opened.document["metrics"], timeout=PATIENCE_S) as answer:
        assert "2 of 2 services answer" in answer.read().decode()


def test_the_key_is_for_its_owner_and_on_no_command_line(opened: Opened) -> None:
    path = opened.data / "operator.key"
    assert path.stat().st_mode & 0o777 == 0o600
    pids = [opened.process.pid, *(each.pid for each in supervise.status(opened.data))]
    started = b"\n".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
    assert len(pids) == 5
    assert path.read_text().strip().rpartition(".")[2].encode() not in started


def test_a_second_stack_in_the_same_folder_is_refused(opened: Opened) -> None:
    assert "already running in" in opened.refused("open", opened.folder)


def test_what_is_no_simulation_is_bad_input_and_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"simulation\.json: missing"):
        berth("open", tmp_path, "--data", tmp_path / "data")
    assert not (tmp_path / "data").exists()
