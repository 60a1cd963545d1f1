"""A job of a workload as the submission that its tenant would have written."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.contracts.identity import derive_job_id
from shared.contracts.jobs import SubmitJob
from shared.ledger.cloudevents import encode
from simulator.workload.rows import WorkloadJob

SOURCE = "/berth/cli"
CHECKPOINT_S = 60.0
RESTART_S = 60.0
"""No trace says what a preemption costs: up to a minute of work, and a minute to start again."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What goes to `submissions.<tenant>`; `job_id` is what Berth will call it."""

    tenant: str
    pool: str
    key: str
    spec: dict[str, object]

    @property
    def job_id(self) -> str:
        return derive_job_id(self.tenant, self.pool, self.key)

    @property
    def body(self) -> dict[str, object]:
        """As the REST API takes it too."""
        return {"pool": self.pool, "idempotency_key": self.key, "spec": self.spec}

    def encoded(self) -> bytes:
        data = msgspec.json.encode(self.body)
        return encode(id=self.key, source=SOURCE, type=SubmitJob.TYPE, data=data)


def of_workload(job: WorkloadJob, pool: str, run: str) -> Submission:
    """The same job of the same run is the same wish, so a repeat is free."""
    spec: dict[str, object] = {
        "name": job.name or "job",
        "user": job.user,
        "gang": {
            "workers": job.workers,
            "gpus_per_worker": job.gpus_per_worker,
            "cpus_per_worker": job.cpus,
            "mem_gib_per_worker": job.mem_gib,
        },
        "checkpoint_interval_s": CHECKPOINT_S,
        "simulated": {
            "duration_s": job.duration_s,
            "exit_code": exit_code(job.succeeded),
            "restart_s": RESTART_S,
        },
    }
    if job.walltime_s:
        spec["walltime_s"] = job.walltime_s
    if job.gpu_types:
        spec["gpu_types"] = list(job.gpu_types)
    return Submission(job.tenant, pool, f"{run}/{job.job_key}"[-128:], spec)


def exit_code(succeeded: bool | None) -> int:
    """A trace's cancelled jobs ran for as long as they did: they end well here."""
    return 1 if succeeded is False else 0
