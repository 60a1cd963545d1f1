"""One training of the benchmark: submitted, slowed by a drill, and followed to its end."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from benchmarks.parts.command import Json
from benchmarks.parts.slow_worker.nodes import answered
from benchmarks.parts.stack import TENANT
from berth_agent.core.environment import DEFAULT_PATH
from cli.api.answers import items
from cli.api.http import Api
from cli.errors import NotFound
from shared.telemetry.traced import spans_from_json

WORKERS = 4
SLOWED = 2
"""Rank of the worker that is slowed."""
STEPS_BEFORE_S = 5.0
"""Undisturbed iterations before the drill, as in a real training."""
LONGEST_S = 900.0
POLL_S = 0.2
STARTED = "job.started.v1"


def missing_torch() -> str:
    """Return why the python3 of workers cannot train, empty if it can."""
    python = shutil.which("python3", path=DEFAULT_PATH)
    if python is None:
        return "python3: none on the PATH of workers; one with PyTorch is required"
    code = "import torch.distributed as d; raise SystemExit(not d.is_gloo_available())"
    done = subprocess.run([python, "-c", code], capture_output=True, check=False)
    return "" if done.returncode == 0 else f"{python}: no PyTorch with gloo; one is required"


@dataclass(frozen=True, slots=True)
class SlowedWorker:
    """A worker that takes `factor` times as long until the training has ended."""

    factor: float


@dataclass(frozen=True, slots=True)
class Training:
    """A fixed number of steps in a folder of its own."""

    client: Api
    folder: Path
    steps: int
    batch: int

    def run(self, drill: SlowedWorker | None) -> Json:
        """Train to the end. Raises RuntimeError if it fails, TimeoutError if it does not end."""
        submitted = {"spec": self._spec(), "tenant": TENANT, "idempotency_key": self.folder.name}
        job_id = str(self.client.post("/v1/jobs", submitted)["job_id"])
        row = self._until(job_id, ("running", "succeeded", "failed"))
        node = ""
        if drill is not None:
            time.sleep(STEPS_BEFORE_S)
            node = str(cast("Sequence[object]", row["nodes"])[SLOWED])
            self._inject(node, drill)
        row = self._until(job_id, ("succeeded", "failed", "cancelled"))
        if drill is not None:
            answered(self.client, f"/v1/nodes/{node}/end-injection", {})
        if row["phase"] != "succeeded":
            raise RuntimeError(f"the training ended as {row['phase']}: {job_id}")
        return self._figures(job_id, row, node)

    def _spec(self) -> Json:
        env = {"PYTHONPATH": str(self.folder), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        command = ["python3", "reported_ddp.py", "1e6", str(self.batch), str(self.steps)]
        gang = {
            "workers": WORKERS,
            "gpus_per_worker": 1,
            "cpus_per_worker": 0.1,
            "mem_gib_per_worker": 0.1,
        }
        return {
            "name": "slow-worker",
            "command": command,
            "env": env,
            "gang": gang,
            "workdir": str(self.folder),
        }

    def _until(self, job_id: str, phases: Sequence[str]) -> Json:
        ends_s = time.monotonic() + LONGEST_S
        while time.monotonic() < ends_s:
            try:
                row = self.client.get(f"/v1/jobs/{job_id}")
            except NotFound:
                row = {}
            if row.get("phase") in phases:
                return row
            time.sleep(POLL_S)
        raise TimeoutError(f"{job_id}: not {', '.join(phases)} after {LONGEST_S:g} s")

    def _inject(self, node: str, drill: SlowedWorker) -> None:
        fault = {"fault": "slow", "factor": drill.factor, "for_s": LONGEST_S, "reason": "benchmark"}
        answered(self.client, f"/v1/nodes/{node}/inject", fault)

    def _figures(self, job_id: str, row: Json, node: str) -> Json:
        timeline = items(self.client.get(f"/v1/jobs/{job_id}/timeline"))
        began_ms = next(at_ms(event) for event in timeline if event["type"] == STARTED)
        figures: Json = {
            "wall_s": round((at_ms(timeline[-1]) - began_ms) / 1000, 1),
            "attempts": row["attempt"],
        }
        if node:
            figures |= {"slow_node": node, "nodes_at_end": row["nodes"]}
            figures["s_from_start"] = dict(moments(timeline, began_ms))
            figures["spans"] = self._span_names(job_id)
        return figures

    def _span_names(self, job_id: str) -> list[str]:
        """Return the names of the spans of its trace, as `berth trace JOB` draws them."""
        document = self.client.get(f"/v1/jobs/{job_id}/trace")
        spans = spans_from_json(cast("list[object]", document["spans"]))
        return sorted({span.name for span in spans})


def moments(timeline: Sequence[Json], began_ms: int) -> Iterator[tuple[str, float]]:
    """Yield what happened to a slow worker, in seconds since the job started."""
    for event in timeline:
        data = cast("Json", event["data"])
        seconds = round((at_ms(event) - began_ms) / 1000, 1)
        match event["type"]:
            case "fault.suspected.v1":
                yield (
                    f"suspected {data['node_id'] or 'job'} ({data.get('cause', 'unknown')})",
                    seconds,
                )
            case "mitigation.planned.v1" | "mitigation.applied.v1":
                verb = str(event["type"]).split(".")[1]
                yield f"{data['level']} {verb}", seconds
            case "job.migrated.v1":
                yield "job stops to migrate", seconds
            case "job.started.v1" if seconds > 0:
                yield "job runs again", seconds


def at_ms(event: Json) -> int:
    return cast("int", event["at"])
