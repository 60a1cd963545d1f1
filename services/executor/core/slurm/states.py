"""States and exit codes of Slurm's jobs (`man squeue`, JOB STATE CODES and JOB REASON CODES)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import cast

from services.executor.core.engines.contract import NO_FAILURE, EnginePhase
from shared.contracts.failures import Failure

WAITING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"}
)
ENDING = frozenset({"COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED"})
RUNNING = frozenset({"RUNNING", "SUSPENDED", "RESIZING"})
LOST_NODE = frozenset({"NODE_FAIL", "BOOT_FAIL"})
TRANSIENT_REASONS = frozenset(
    {"", "None", "Resources", "Priority", "BeginTime", "Cleaning", "Prolog", "Dependency"}
    | {"ReqNodeNotAvail"}
)
"""A job with such a reason may start by waiting alone; with another one the engine refuses it."""
REASONS: Mapping[str, tuple[str, str]] = {
    "OUT_OF_MEMORY": ("out_of_memory", "the worker used more than the memory of its allocation"),
    "TIMEOUT": ("walltime", "the time limit in Slurm is over"),
    "DEADLINE": ("walltime", "its deadline in Slurm is over"),
    "NODE_FAIL": ("step_lost", "Slurm gave up a node of it"),
    "BOOT_FAIL": ("step_lost", "a node of it did not boot"),
    "PREEMPTED": ("step_lost", "Slurm preempted it"),
    "CANCELLED": ("engine_cancelled", "it was cancelled in Slurm"),
}


def phase_of(states: Set[str]) -> EnginePhase:
    """Return the phase; GPUs are held while a state of an end is not the only one."""
    if states & ENDING:
        return EnginePhase.ENDING
    if states & WAITING:
        return EnginePhase.PENDING
    return EnginePhase.RUNNING if states & RUNNING else EnginePhase.ENDED


def is_refused(reason: str) -> bool:
    """Return whether a job with this reason does not start by waiting alone."""
    return reason not in TRANSIENT_REASONS


def lost_a_node(states: Set[str]) -> bool:
    return bool(states & LOST_NODE)


def failure_of(states: Set[str], owner: str, reason: str) -> Failure:
    """Return why a job ended that its program did not end, nothing for other jobs."""
    for state, (name, words) in REASONS.items():
        if state in states:
            more = "" if reason in TRANSIENT_REASONS else f" ({reason})"
            return Failure(reason=name, detail=f"{words}: {owner}{more}"[:1024])
    return NO_FAILURE


def exit_code_of(value: object) -> int:
    """Return 128 + signal if a signal ended the job, else its exit code.

    22.05 writes the status of `wait`, later releases an object.
    """
    if isinstance(value, int):
        number = value & 0x7F
        return 128 + number if number else (value >> 8) & 0xFF
    if not isinstance(value, Mapping):
        return 0
    number = _number(cast("Mapping[str, object]", value.get("signal") or {}).get("id"))
    number = number or _number(
        cast("Mapping[str, object]", value.get("signal") or {}).get("signal_id")
    )
    return 128 + number if number else _number(value.get("return_code"))


def _number(value: object) -> int:
    if isinstance(value, Mapping):
        value = value.get("number")
    return value if isinstance(value, int) else 0
