"""What the core asks of the shell, and what the shell tells the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from shared.contracts.jobs import JobSpec
from shared.contracts.reports import Report


class Order(NamedTuple):
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
    spec: JobSpec
    gpu_types: tuple[str, ...] = ()
    """Of the gang's nodes, each once."""
    done_s: float = 0.0
    """Cluster seconds of work that earlier attempts saved in a checkpoint."""
    restart_s: float = 0.0
    """Cluster seconds until that work goes on: a start after a preemption pays them."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make everything ready, start nothing; answered by Ready or Refused."""

    order: Order


@dataclass(frozen=True, slots=True)
class Go:
    """Start a prepared worker; answered by Ended, some day."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End a worker: ask, wait at most `grace_s` wall seconds, kill; answered by Ended."""

    allocation_id: str
    grace_s: float


@dataclass(frozen=True, slots=True)
class Forget:
    """The ledger released the worker; its end need not be remembered any more."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class Say:
    """Report this to placement."""

    report: Report


Effect: TypeAlias = Prepare | Go | Stop | Forget | Say


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker waits for the go."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The worker can never run here."""

    allocation_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing of the worker is left; `exit_code` None says that it never ran."""

    allocation_id: str
    exit_code: int | None
    ran_ms: int = 0


Outcome: TypeAlias = Ready | Refused | Ended
