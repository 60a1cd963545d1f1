"""A job of a workload as a submission of its tenant."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import SubmitJob
from shared.ledger.cloudevents import encode
from simulator.workload.rows import WorkloadJob

SOURCE = "/berth/cli"
CHECKPOINT_S = 60.0
RESTART_S = 60.0
"""Assumed cost of a preemption, which no trace records."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A record of `submissions.<tenant>`; `job_id` is the id that Berth derives from it."""

    tenant: str
    pool: str
    key: str
    spec: dict[str, object]

    @property
    def job_id(self) -> str:
        return derive_job_id(self.tenant, self.pool, self.key)

    @property
    def body(self) -> dict[str, object]:
        """The body, as accepted by the REST API too."""
        return {"pool": self.pool, "idempotency_key": self.key, "spec": self.spec}

    def encoded(self) -> bytes:
        data = msgspec.json.encode(self.body)
        return encode(id=self.key, source=SOURCE, type=SubmitJob.TYPE, data=data)


def of_workload(
    job: WorkloadJob,
    pool: str,
    run: str,
    checkpoint_s: float = CHECKPOINT_S,
    restart_s: float = RESTART_S,
) -> Submission:
    """Return the submission of a job; a repeat within a run has the same key.

    Its checkpoints are those of the trace, where that names them.
    """
    known_s = job.checkpoint_interval_s
    spec: dict[str, object] = {
        "name": job.name or "job",
        "user": job.user,
        "gang": {
            "workers": job.workers,
            "gpus_per_worker": job.gpus_per_worker,
            "cpus_per_worker": job.cpus,
            "mem_gib_per_worker": job.mem_gib,
        },
        "checkpoint_interval_s": checkpoint_s if known_s is None else known_s or None,
        "simulated": {
            "duration_s": job.duration_s,
            "exit_code": exit_code(job.succeeded),
            "restart_s": restart_s,
        },
    }
    if job.walltime_s:
        # It ran as long as the trace says, whatever its user requested.
        spec["walltime_s"] = max(job.walltime_s, job.duration_s + restart_s)
    if job.gpu_types:
        spec["gpu_types"] = list(job.gpu_types)
    return Submission(job.tenant, pool, f"{run}/{job.job_key}"[-128:], spec)


def exit_code(succeeded: bool | None) -> int:
    """Return the exit code; a cancelled job of a trace succeeds after its recorded run time."""
    return 1 if succeeded is False else 0
