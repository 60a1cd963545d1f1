"""Effects that the core requests of the shell, and outcomes that the workers return to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from shared.contracts.job_spec import JobSpec, Spread
from shared.contracts.reports import Report


class WorkerSpec(NamedTuple):
    """Everything that the backend needs to run one worker."""

    allocation_id: str
    job_id: str
    rank: int
    world_size: int
    node_id: str
    gpus: tuple[int, ...]
    gpu_milli: int
    gang_nodes: tuple[str, ...]
    job_spec: JobSpec
    gpu_types: tuple[str, ...] = ()
    """GPU types of the gang's nodes, each once."""
    spread: Spread | None = None
    """Links between the gang's nodes; None: there is one node."""
    done_s: float = 0.0
    """Cluster seconds of work that earlier attempts saved in a checkpoint."""
    restart_s: float = 0.0
    """Cluster seconds until that work goes on: a start after a preemption pays them."""
    series: str = ""
    """Name of jobs that do the same work."""


@dataclass(frozen=True, slots=True)
class PrepareWorker:
    """Prepare a worker without starting it; the outcome is Prepared."""

    spec: WorkerSpec


@dataclass(frozen=True, slots=True)
class StartWorker:
    """Start a prepared worker; the outcome is WorkerEnded, at its end."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class StopWorker:
    """End a worker at once, also an unknown one; the outcome is WorkerEnded."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class SendReport:
    """Report to placement."""

    report: Report


Effect: TypeAlias = PrepareWorker | StartWorker | StopWorker | SendReport


@dataclass(frozen=True, slots=True)
class Prepared:
    """The worker can be started."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class WorkerEnded:
    """Nothing of the worker is left; `exit_code` is None if it never ran."""

    allocation_id: str
    exit_code: int | None
    ran_ms: int = 0
    reason: str = ""
    """Machine-readable, of an end by a limit; empty: it ended by itself, or was stopped."""
    detail: str = ""


WorkerOutcome: TypeAlias = Prepared | WorkerEnded
