"""Jobs and commands of the tests of agents, and a job that waits for its test."""

from __future__ import annotations

import os
from pathlib import Path

from typer.testing import CliRunner, Result

from berth_agent.linux import processes
from cli.errors import Unreachable
from cli.main import app
from tests.e2e.joined import JoinedNode
from tests.e2e.stand import Json, Stand, eventually

POOL, SHORT = "gpu", "short"
SHORT_TERMS = {
    "stop_after_s": 15,
    "heartbeat_s": 0.5,
    "request_timeout_s": 5,
    "reconnect_s": 0.5,
    "suspect_after_s": 6,
    "kill_s": 5,
    "clock_rate_bound": 1,
    "slack_s": 0,
}
WAITS = "echo started; read word < {fifo}; echo got $word; exit 5"
"""Runs until the test writes to the FIFO."""


def submit(stand: Stand, command: list[str] | str, pool: str = POOL, **spec: object) -> str:
    words = ["sh", "-c", command] if isinstance(command, str) else command
    body = {"pool": pool, "spec": {"name": "job", "gang": {"workers": 1}, "command": words, **spec}}

    def taken() -> Json | None:
        status, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
        return ticket if status == 202 else None

    return str(eventually(taken)["job_id"])


def berth(stand: Stand, *words: str) -> str:
    """Return what the command prints; it is repeated while a busy broker lets it fail."""

    def ended() -> Result | None:
        done = CliRunner().invoke(app, [*words, "--data", str(stand.stack.data_dir)])
        # The runner of tests passes by what turns an error into its exit code.
        return None if isinstance(done.exception, Unreachable) else done

    done = eventually(ended)
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


def output(stand: Stand, job_id: str) -> list[str]:
    document = stand.get(f"/v1/jobs/{job_id}/logs?tail=1000")
    return [f"{line['rank']}: {line['text']}" for line in document["lines"]] if document else []


def is_alive(stand: Stand, node_id: str) -> bool:
    page = stand.get("/v1/nodes?limit=1000")
    rows = page["items"] if page else []
    return any(row["alive"] for row in rows if row["node_id"] == node_id)


class Waiting:
    """A running job that ends with exit code 5 when the test writes to its FIFO."""

    def __init__(self, stand: Stand, node: JoinedNode, tmp: Path) -> None:
        self.fifo = tmp / "fifo"
        os.mkfifo(self.fifo)
        self._stand, self._node = stand, node
        self.job_id = submit(stand, WAITS.format(fifo=self.fifo))
        eventually(lambda: "0: started" in output(stand, self.job_id))
        [allocation_id] = node.workers_of(self.job_id)
        self.step = node.step(allocation_id)

    def is_alive(self) -> bool:
        return processes.is_alive(self.step["pid"], self.step["ticks"])

    def ends(self) -> None:
        """Tell it to end; it ran once, under the step that started it."""
        assert self.is_alive()
        self.fifo.write_text("enough\n")
        row = self._stand.ended(self.job_id)
        assert (row["phase"], row["exit_code"], row["attempt"]) == ("failed", 5, 1)
        eventually(lambda: "0: got enough" in output(self._stand, self.job_id))
