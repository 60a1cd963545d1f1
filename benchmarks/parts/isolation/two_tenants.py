"""Two tenants on one node: one that attacks, and one whose job must not notice."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import psutil

from benchmarks.parts.command import Json
from benchmarks.parts.isolation.node import ConfinedNode
from benchmarks.parts.slow_worker.nodes import answered
from cli.api.answers import await_answer
from cli.api.http import Api, part
from cli.api.target import Target
from cli.errors import NotFound

ATTACKER, OTHER = "red", "blue"
ENDS = ("succeeded", "failed", "cancelled", "rejected")
LONGEST_S = 180.0
SETTLE_S = 20.0
"""Time in which the last processes and lines of an ended job are to be gone or shown."""
END = "the script has ended"
POLL_S = 0.2
MARKER = "marker-of-blue-7f3a"
"""Text that no job of the attacker may read: in blue's variables, output, files and secrets."""
MARKER_IN_PARTS = '"marker-of" + "-blue-7f3a"'
"""The same in a program that must not find itself."""
TICK_S = 0.2
LEFT_BY_BLUE = "left-by-blue"
"""File that blue leaves in folders for all."""


def tenant_api(client: Api, tenant: str) -> Api:
    """Return a client with a key of a tenant."""
    receipt = answered(client, f"/v1/tenants/{tenant}/keys", {})
    target = client.installation
    return Api(Target(target.url, str(receipt["key"]), target.ca))


@dataclass(slots=True)
class TwoTenants:
    """The two tenants' clients, the node, and the folder of the control plane."""

    admin: Api
    red: Api
    blue: Api
    node: ConfinedNode
    node_id: str
    pool: str
    control_plane: Path
    """Folder of the control plane, with its secrets."""
    neighbour: str = ""
    """Blue's job, which ticks."""
    _submitted: list[str] = field(default_factory=list)

    def submit(self, client: Api, script: str, **spec: object) -> str:
        """Submit a shell script; return the id of the job."""
        gang = {"gpus_per_worker": 0, "cpus_per_worker": 0.5, "mem_gib_per_worker": 0.25}
        body = {"name": "case", "command": ["sh", "-c", script], "gang": gang, "grace_s": 1.0}
        named = {"pool": self.pool, "spec": {**body, **spec}}
        job_id = str(client.post("/v1/jobs", named)["job_id"])
        self._submitted.append(job_id)
        return job_id

    def ended(self, job_id: str) -> Json:
        """Wait for the end of a job. Raises TimeoutError."""
        return self.until(job_id, ENDS)

    def until(self, job_id: str, phases: tuple[str, ...]) -> Json:
        """Wait until a job is in one of these phases. Raises TimeoutError, or when it has ended."""
        ends_s, row = time.monotonic() + LONGEST_S, dict[str, object]()
        while time.monotonic() < ends_s and row.get("phase") not in (*phases, *ENDS):
            time.sleep(POLL_S)
            with suppress(NotFound):
                row = self.admin.get(f"/v1/jobs/{part(job_id)}")
        if row.get("phase") in phases:
            return row
        named = ("phase", "reason", "detail", "failure")
        raise TimeoutError(f"{job_id}: {[row.get(name) for name in named]}; {phases[0]} is awaited")

    def output(self, job_id: str) -> list[str]:
        return [str(line["text"]) for line in self.admin.logs(job_id)]

    def attack(self, script: str, **spec: object) -> tuple[Json, list[str]]:
        """Run a script of the attacker to its end; return the job and its whole output.

        The end of a worker overtakes its last lines.
        """
        whole = f"(\n{script}\n)\ncode=$?; echo {END}; exit $code"
        job_id = self.submit(self.red, whole, **spec)
        row = self.ended(job_id)
        if row["phase"] == "succeeded" and not self.shown(job_id, END):
            raise TimeoutError(f"{job_id}: its last line is not shown")
        return row, [line for line in self.output(job_id) if line != END]

    def shown(self, job_id: str, text: str) -> bool:
        """Return whether the output of a job ends with this line, which may still be on its way."""
        ends_s = time.monotonic() + SETTLE_S
        while self.output(job_id)[-1:] != [text]:
            if time.monotonic() > ends_s:
                return False
            time.sleep(POLL_S)
        return True

    def cancel(self, client: Api, job_id: str) -> None:
        await_answer(client, client.post(f"/v1/jobs/{part(job_id)}/cancel", {"reason": "over"}))

    def start_neighbour(self) -> None:
        """Start blue's job: it ticks, and has left what it has where jobs leave things."""
        left = " ".join(f"{folder}/{LEFT_BY_BLUE}" for folder in ("/tmp", "/var/tmp", "/dev/shm"))
        script = (
            f'umask 0; for f in {left} weights; do echo "$MARK" > $f; done; echo "$MARK"; '
            f"while :; do echo tick; sleep {TICK_S}; done"
        )
        self.neighbour = self.submit(self.blue, script, env={"MARK": MARKER})
        self.until(self.neighbour, ("running",))
        self.ticks_on(0)

    def ticks(self) -> int:
        return max((int(line["line"]) for line in self.admin.logs(self.neighbour, 1)), default=0)

    def ticks_on(self, seen: int) -> bool:
        """Return whether the neighbour still runs in its first attempt, and ticks again."""
        ends_s = time.monotonic() + LONGEST_S / 4
        while time.monotonic() < ends_s:
            row = self.admin.get(f"/v1/jobs/{part(self.neighbour)}")
            if row["phase"] != "running" or row["attempt"] != 1:
                return False
            if self.ticks() > seen + 2:
                return True
            time.sleep(POLL_S)
        return False

    def processes_of(self, job_id: str) -> list[int]:
        """Return the processes of the machine that have the id of this job among their variables.

        One that has gone out of its session, or was given to another parent, still has it.
        """
        name = f"BERTH_JOB_ID={job_id}".encode()
        pids = list[int]()
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if name in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                    pids.append(process.pid)
        return pids

    def runs_images(self) -> bool:
        node = self.admin.get(f"/v1/nodes/{part(self.node_id)}")
        return cast("Json", node["labels"]).get("berth.images") == "yes"

    def failure(self, row: Json) -> str:
        """Return the reason of a job's failure, empty without one."""
        failure = cast("Json", row.get("failure") or {})
        return str(failure.get("reason") or row.get("reason") or "")
