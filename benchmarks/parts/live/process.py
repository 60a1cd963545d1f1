"""A real process that rank preempts, and that resumes from its own checkpoint."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from cli.api.answers import Watch, items
from cli.api.http import Api, Json
from cli.stack.machine import local_node
from shared.contracts.pools import ConfigurePool, default_of

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "checkpoints.py"
REPORTER = ROOT / "reporter" / "berth_reporter"
STEP_S = 0.05
CHECKPOINTS = 4
LEAST_S = 20.0
"""Checkpoints of the training, and s of its work, at least: it is stopped after its first report,
which its agent passes on within 10 s."""
WITHIN_S = 180.0
LOOK_S = 0.2
ENDS = ("succeeded", "failed", "cancelled", "rejected")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resumed:
    """Steps and stops of the training, by its own files and the ledger."""

    starts: int
    stopped_by: str
    """The reason of its preemption."""
    checkpoint_step: int
    """Step of the checkpoint from which the second start went on."""
    stopped_at_step: int
    """Last step of the first start."""
    steps_done_again: int
    """Those after the checkpoint: the work that the stop lost."""
    steps_missing: int
    is_exact: bool
    """Whether the training ended with the number that it has without a stop."""

    @property
    def is_resumed(self) -> bool:
        """Return whether it went on from its own checkpoint, and lost no step before it."""
        again = self.stopped_at_step - self.checkpoint_step
        return (
            self.starts == 2
            and self.checkpoint_step > 0
            and self.steps_done_again == again
            and self.steps_missing == 0
            and self.is_exact
        )

    def plain(self) -> dict[str, object]:
        return {**asdict(self), "is_resumed": self.is_resumed}


def local_settings(name: str, time_scale: float) -> ConfigurePool:
    """Return a pool of this machine where rank stops jobs by the rules of the day, sped up.

    A real process has no virtual clock: what protects it is as much shorter as the day. The window
    after a checkpoint stays, since the report of one travels as slowly as ever.
    """
    return ConfigurePool(
        pool=name,
        backends=("agent",),
        base_policy="sjf",
        runtime="user",
        preemption="ranked",
        min_residency_s=default_of("min_residency_s") / time_scale,
        start_protection_s=default_of("start_protection_s") / time_scale,
        large_gang_share=1.0,
    )


def preempted_process(api: Api, tenant: str, pool: str, checkpoint_s: float) -> Resumed:
    """Run a training on all GPUs of this machine, and a shorter job that outranks it.

    The training names no interval: nothing but its own report of a checkpoint lets rank stop it.
    Raises ValueError if a step does not follow in time.
    """
    every = max(1, round(checkpoint_s / STEP_S))
    steps = every * max(CHECKPOINTS, math.ceil(LEAST_S / (every * STEP_S)))
    gpus = local_node(pool).gpus
    with tempfile.TemporaryDirectory(prefix="berth-shared-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copy(EXAMPLE, folder)
        shutil.copytree(REPORTER, folder / REPORTER.name)
        command = ["python3", str(folder / EXAMPLE.name), name, "--steps", str(steps)]
        command += ["--step-s", str(STEP_S), "--save-every", str(every)]
        long = submit(api, tenant, pool, gpus, command, 50_000.0, name)
        until("the training runs", lambda: phase_of(api, long) == "running")
        short = submit(api, tenant, pool, gpus, ["sleep", "1"], 60.0)
        for job_id in (short, long):
            until(f"{job_id} ends", lambda job_id=job_id: phase_of(api, job_id) in ENDS)  # type: ignore[misc]
        events = items(api.get(f"/v1/jobs/{long}/timeline"))
        return read_steps(folder, steps, stop_reason(events), every)


def submit(
    api: Api,
    tenant: str,
    pool: str,
    gpus: int,
    command: list[str],
    walltime_s: float,
    folder: str = "",
) -> str:
    spec = {
        "name": "live-day",
        "gang": {"workers": 1, "gpus_per_worker": gpus},
        "command": command,
        "walltime_s": walltime_s,
        "workdir": folder,
        "env": {"PYTHONPATH": folder},
    }
    return str(api.post("/v1/jobs", {"tenant": tenant, "pool": pool, "spec": spec})["job_id"])


def phase_of(api: Api, job_id: str) -> str:
    row = Watch(api).look(f"/v1/jobs/{job_id}")
    return str(row["phase"]) if row else ""


def until(event: str, condition: Callable[[], T]) -> T:
    """Wait until the condition holds. Raises ValueError if it does not in time."""
    ends_s = time.monotonic() + WITHIN_S
    while not (result := condition()):
        if time.monotonic() > ends_s:
            raise ValueError(f"not within {WITHIN_S:g} s: {event}")
        time.sleep(LOOK_S)
    return result


def stop_reason(events: list[Json]) -> str:
    """Return the reasons of its preemptions."""
    stops = [event["data"] for event in events if event["type"] == "job.preempted.v1"]
    return ", ".join(str(stop["reason"]) for stop in stops if isinstance(stop, dict))


def read_steps(folder: Path, steps: int, stopped_by: str, every: int) -> Resumed:
    """Return the steps that the training noted. Raises ValueError if there are none."""
    lines = (folder / "steps").read_text().split("\n")[:-1] if (folder / "steps").exists() else []
    noted = [(attempt, int(step)) for attempt, _, step in (line.partition(" ") for line in lines)]
    if not noted:
        raise ValueError("the training has noted no step; `berth logs` of its job says why")
    attempts = list(dict.fromkeys(attempt for attempt, _ in noted))
    first = [step for attempt, step in noted if attempt == attempts[0]]
    later = [step for attempt, step in noted if attempt != attempts[0]]
    resumed_from = later[0] - 1 if later else 0
    done = [step for _, step in noted]
    return Resumed(
        starts=len(attempts),
        stopped_by=stopped_by,
        checkpoint_step=resumed_from if resumed_from % every == 0 else 0,
        stopped_at_step=first[-1],
        steps_done_again=len(done) - len(set(done)),
        steps_missing=len(set(range(1, steps + 1)) - set(done)),
        is_exact=json.loads((folder / "checkpoint.json").read_text()) == ending(steps),
    )


def ending(steps: int) -> dict[str, int]:
    """Return the state in which the training ends if nothing is lost."""
    weight = 1
    for step in range(1, steps + 1):
        weight = (weight * 31 + step) % (2**61 - 1)
    return {"step": steps, "weight": weight}
