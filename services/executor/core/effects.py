"""What the core asks of the shell, and what the shell tells the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from shared.contracts.jobs import JobSpec
from shared.contracts.reports import Report


class WorkerSpec(NamedTuple):
    """All that a backend needs to run one worker."""

    allocation_id: str
    job_id: str
    tenant: str
    attempt: int
    array_index: int | None
    rank: int
    world_size: int
    local_rank: int
    node_id: str
    gpus: tuple[int, ...]
    gpu_milli: int
    gang_nodes: tuple[str, ...]
    master_address: str
    job_spec: JobSpec
    gpu_types: tuple[str, ...] = ()
    """Of the gang's nodes, each once."""
    done_s: float = 0.0
    """Cluster seconds of work that earlier attempts saved in a checkpoint."""
    restart_s: float = 0.0
    """Cluster seconds until that work goes on: a start after a preemption pays them."""


@dataclass(frozen=True, slots=True)
class PrepareWorker:
    """Make everything ready, start nothing; answered by Ready or Refused."""

    spec: WorkerSpec


@dataclass(frozen=True, slots=True)
class StartWorker:
    """Start a prepared worker; answered by Ended, some day."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class StopWorker:
    """End a worker: ask, wait at most `grace_s` wall seconds, kill; answered by Ended."""

    allocation_id: str
    grace_s: float


@dataclass(frozen=True, slots=True)
class ForgetWorker:
    """The ledger released the worker; its end need not be remembered any more."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class SendReport:
    """Report this to placement."""

    report: Report


Effect: TypeAlias = PrepareWorker | StartWorker | StopWorker | ForgetWorker | SendReport


@dataclass(frozen=True, slots=True)
class Prepared:
    """The worker waits for the go."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class PrepareFailed:
    """The worker can never run here."""

    allocation_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerEnded:
    """Nothing of the worker is left; `exit_code` None says that it never ran."""

    allocation_id: str
    exit_code: int | None
    ran_ms: int = 0


WorkerOutcome: TypeAlias = Prepared | PrepareFailed | WorkerEnded
