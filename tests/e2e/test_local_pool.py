"""The pool `local`: an agent beside the services, whose workers go on whoever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from berth_agent.linux import processes
from berth_agent.token_names import STEP_TOKEN, TOKEN
from infra.broker import kafka
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.running import load
from infra.supervisor.stack import AGENT, SERVICES
from tests.e2e.stand import LOCAL_POOL, Stand, a_stand, eventually
from tests.patience import PATIENCE_S

ABSENT = ("failslow", "throttle")
NAMES = tuple(service.name for service in SERVICES if service.name not in ABSENT)


class Waiting:
    """A command that runs until the test ends it, with exit code 5."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.fifo = folder, folder / name
        os.mkfifo(self.fifo)
        self.fifo.chmod(0o666)
        self.command = ["sh", "-c", f"echo up; read word < {self.fifo}; echo $word; exit 5"]

    def pid(self) -> int:
        """Return the pid of its worker, 0 if it does not run."""
        for process in psutil.process_iter(["cmdline"]):
            if process.info["cmdline"] == self.command:
                return int(process.pid)
        return 0

    def end(self) -> None:
        self.fifo.write_text("enough\n")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the users of tenants may enter."""
    with scratch_folder("local") as folder:
        yield folder


def submitted(stand: Stand, waiting: Waiting) -> str:
    """Submit the command; return the job once its worker runs."""
    spec = {"name": "waits", "command": waiting.command, "workdir": str(waiting.folder)}
    body = {"pool": LOCAL_POOL, "spec": spec}
    code, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
    assert code == 202, ticket
    eventually(waiting.pid)
    return str(ticket["job_id"])


@pytest.mark.stack
@pytest.mark.parts
def test_a_job_outlives_every_service_and_ends_with_an_embedded_stack(folder: Path) -> None:
    with a_stand(*ABSENT) as stand:
        data, first = stand.stack.data_dir, Waiting(folder, "first")
        job_id = submitted(stand, first)
        worker, before = first.pid(), stand.pids()
        for name in (*NAMES, AGENT):
            os.kill(before[name], signal.SIGKILL)
        eventually(lambda: all(stand.pids()[name] not in (0, before[name]) for name in NAMES))
        supervise.wait_ready(data, (*NAMES, AGENT), PATIENCE_S)
        assert first.pid() == worker
        first.end()
        row = stand.ended(job_id)
        assert (row["phase"], row["exit_code"], row["attempt"]) == ("failed", 5, 1)
        assert stand.verify().violations == []

        second = Waiting(folder, "second")
        submitted(stand, second)
        [node_id] = {row["node_id"] for row in nodes(stand)}
        supervise.down(data)
        assert not second.pid()
        names = (TOKEN, STEP_TOKEN)
        # A step ends a moment after it has noted the end of its worker.
        eventually(lambda: not list(processes.with_token(f"{node_id}:", names)))


def nodes(stand: Stand) -> list[dict[str, Any]]:
    page = stand.get("/v1/nodes?limit=1000")
    return [row for row in page["items"] if row["pool"] == LOCAL_POOL] if page else []


def berth(data: Path, *words: str, command: Sequence[str] = ()) -> Any:
    rest = ["--", *command] if command else []
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words, "--data", str(data), *rest],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return json.loads(done.stdout) if "--json" in words else done.stdout


@pytest.mark.stack
@pytest.mark.kafka
@pytest.mark.parts
@pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there")
def test_a_job_outlives_a_durable_stack_that_stops_and_starts_again(folder: Path) -> None:
    data, waiting = folder / "data", Waiting(folder, "fifo")
    begin = ("up", "--broker", "kafka", "--tls", "--detach")
    try:
        berth(data, *begin)
        berth(data, "tenants", "add", "ada", "--pool", LOCAL_POOL)
        where = ("--pool", LOCAL_POOL, "--workdir", str(folder))
        submit = ("submit", "--tenant", "ada", *where)
        job_id = str(berth(data, *submit, "--json", command=waiting.command)["job_id"])
        worker = eventually(waiting.pid)
        node = (load(data).agent / "identity.json").read_text()
        berth(data, "down")
        assert waiting.pid() == worker
        berth(data, *begin)
        berth(data, "restart", AGENT)
        assert waiting.pid() == worker
        waiting.end()
        row = eventually(lambda: ended(data, job_id))
        assert (row["phase"], row["exit_code"], row["attempt"]) == ("failed", 5, 1)
        again = (load(data).agent / "identity.json").read_text()
        assert json.loads(again)["secret"] == json.loads(node)["secret"]
        berth(data, "verify")
        berth(data, "down")
        (load(data).agent / "identity.json").unlink()
        berth(data, *begin)
        berth(data, *submit, "--wait", command=["true"])
    finally:
        berth(data, "down")


def ended(data: Path, job_id: str) -> dict[str, Any] | None:
    row: dict[str, Any] = berth(data, "show", job_id, "--json")
    return row if row["phase"] in ("failed", "succeeded") else None
