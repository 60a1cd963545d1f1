"""The contract between Berth and an engine: its state as Berth sees it, and the orders to it.

A backend of an engine turns its own state into an `EngineState` and carries out `Action`s. It keeps
nothing in memory that a decision depends on: an executor that was killed looks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from services.executor.core.engines.gangs import EngineGang
from shared.contracts.failures import Failure

NO_FAILURE = Failure(reason="")
CPU_TYPE, ANY_GPU_TYPE = "cpu", "gpu"
"""GPU types of nodes without GPUs, and of GPUs whose type the engine does not name."""


class EnginePhase(StrEnum):
    """Phases of the engine's job; GPUs are free in `ended` alone."""

    PENDING = "pending"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class EngineNode:
    """A node as the engine describes it."""

    node_id: str
    gpus: int
    gpu_type: str
    cpus: float
    mem_gib: float
    address: str
    boot_id: str = ""
    """Changes with each boot of the machine; empty: unknown."""
    responds: bool = True
    """The engine hears from it."""
    drained: str = ""
    """Why the engine starts nothing new there; empty if it does."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of its registration, beside those of every engine."""


@dataclass(frozen=True, slots=True)
class EngineJob:
    """A job of the engine, of Berth or of others."""

    ref: str
    """The engine's own id."""
    identity: str
    """The text of an `Identity` that Berth wrote into the job; empty: Berth did not start it."""
    phase: EnginePhase
    owner: str
    """Words for people: its id and user."""
    user: str = ""
    """UNIX user, by name where the engine knows it."""
    nodes: tuple[str, ...] = ()
    gpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Indices of the GPUs that it holds, by node."""
    gpu_counts: Mapping[str, int] = field(default_factory=dict)
    """Numbers of the GPUs that it holds by node, where the engine does not show indices."""
    waits_for: str = ""
    """The engine's reason why it does not start yet."""
    is_refused: bool = False
    """It will not start by waiting alone."""
    restarts: int = 0
    """Starts after the first one, by the engine itself."""
    failure: Failure = NO_FAILURE
    """Of an end that its program did not choose."""
    exit_code: int = 0
    """128 + signal if a signal ended it."""
    lost_node: bool = False
    """It ended because the engine gave up a node, on which it may run on."""
    is_partial: bool = False
    """A part of it is missing, which another submission adds."""
    has_failed: bool = False
    """A worker of it has failed, and the engine does not end the others by itself."""
    is_kept: bool = False
    """It has ended, and the engine keeps it until it is forgotten."""


@dataclass(frozen=True, slots=True)
class RankEnd:
    """The end of one worker, as its own wrapper noted it."""

    exit_code: int
    ran_ms: int
    ended_ms: int
    """By the clock of its node: it shows which worker of a gang ended first."""
    reason: str = ""
    """As the wrapper knows it; empty: the program chose its exit code, or a signal ended it."""
    detail: str = ""
    output: tuple[str, ...] = ()
    """Last lines, oldest first."""


@dataclass(frozen=True, slots=True)
class GangProgress:
    """Notes of a gang's own processes, where the executor can read them."""

    ready: str = ""
    """Ref of the job that stands ready and waits for its start."""
    is_begun: bool = False
    """The program was started once, and never is again."""
    needs_start: bool = False
    """Its start was decided, and is to be carried out again: an executor died in the middle."""
    is_forbidden: bool = False
    """The program was not started, and never is."""
    cleared: frozenset[str] = frozenset()
    """Nodes that have shown that nothing of the gang runs there any more, where it was lost."""
    settle_s: float = 0.0
    """Time for which all other nodes of a gang that the engine lost have to answer, beside its
    grace, until nothing of it runs there."""
    ends: Mapping[int, RankEnd] = field(default_factory=dict)


NO_PROGRESS = GangProgress()


@dataclass(frozen=True)
class EngineState:
    """One complete look at the engine."""

    nodes: Mapping[str, EngineNode]
    jobs: tuple[EngineJob, ...]
    progress: Mapping[str, GangProgress] = field(default_factory=dict)
    """By identity."""
    forgets_starts: bool = False
    """A gang that the engine shows as never started may have begun, before it lost its memory."""

    def jobs_of(self, identity: str) -> tuple[EngineJob, ...]:
        return tuple(self._by_identity.get(identity, ()))

    def jobs_on(self, node_id: str) -> tuple[EngineJob, ...]:
        """Return the jobs on a node that have not ended."""
        return tuple(self._by_node.get(node_id, ()))

    @cached_property
    def _by_identity(self) -> Mapping[str, list[EngineJob]]:
        jobs: dict[str, list[EngineJob]] = {}
        for job in self.jobs:
            jobs.setdefault(job.identity, []).append(job)
        return jobs

    @cached_property
    def _by_node(self) -> Mapping[str, list[EngineJob]]:
        jobs: dict[str, list[EngineJob]] = {}
        for job in self.jobs:
            if job.phase is not EnginePhase.ENDED:
                for node_id in dict.fromkeys(job.nodes):
                    jobs.setdefault(node_id, []).append(job)
        return jobs


@dataclass(frozen=True, slots=True)
class Submit:
    """Have the engine allocate the gang on its nodes, and wait there for the start."""

    gang: EngineGang


@dataclass(frozen=True, slots=True)
class Start:
    """Let the programs of a gang begin, in that job of the engine alone."""

    gang: EngineGang
    ref: str


@dataclass(frozen=True, slots=True)
class Forbid:
    """See to it that the program of this identity never starts, whoever submits it."""

    identity: str


@dataclass(frozen=True, slots=True)
class NoteLost:
    """Note for good that the programs of a gang may have begun, of which the engine knows nothing.

    None of them begins any more, and the gang ends as one of a node that the engine gave up.
    """

    gang: EngineGang


@dataclass(frozen=True, slots=True)
class Signal:
    """Send SIGTERM to the programs of a job: its grace begins."""

    ref: str
    grace_s: float = field(default=0.0, compare=False)
    """For an engine that kills by itself when it is over."""


@dataclass(frozen=True, slots=True)
class Kill:
    """End a job at once, in any phase."""

    ref: str
    has_program: bool = False
    """Kill the programs alone, whose job ends with them: that is faster than the engine's own end
    of a job, which may give a grace again."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove what the engine keeps of a job that has ended and is released in the ledger."""

    ref: str


Action: TypeAlias = Submit | Start | Forbid | NoteLost | Signal | Kill | Forget
