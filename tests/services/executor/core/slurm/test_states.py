"""States of Slurm's jobs: when GPUs are free, and why a job ended."""

from __future__ import annotations

import pytest

from services.executor.core.engines.contract import EnginePhase
from services.executor.core.slurm.states import (
    exit_code_of,
    failure_of,
    is_refused,
    lost_a_node,
    phase_of,
)


@pytest.mark.parametrize(
    ("states", "phase"),
    [
        ({"PENDING"}, EnginePhase.PENDING),
        ({"REQUEUED", "PENDING"}, EnginePhase.PENDING),
        ({"RUNNING"}, EnginePhase.RUNNING),
        ({"COMPLETING"}, EnginePhase.ENDING),
        ({"CANCELLED", "COMPLETING"}, EnginePhase.ENDING),
        ({"COMPLETED"}, EnginePhase.ENDED),
        ({"NODE_FAIL"}, EnginePhase.ENDED),
    ],
)
def test_gpus_are_free_at_the_end_alone(states: set[str], phase: EnginePhase) -> None:
    assert phase_of(states) is phase


def test_an_end_that_the_program_did_not_choose_has_a_reason() -> None:
    assert failure_of({"NODE_FAIL"}, "job 1", "None").reason == "step_lost"
    assert failure_of({"OUT_OF_MEMORY"}, "job 1", "").reason == "out_of_memory"
    cancelled = failure_of({"CANCELLED"}, "job 1", "Admin")
    assert cancelled.detail == "it was cancelled in Slurm: job 1 (Admin)"
    assert failure_of({"FAILED"}, "job 1", "NonZeroExitCode").reason == ""
    assert lost_a_node({"NODE_FAIL"}) and not lost_a_node({"FAILED"})


def test_a_reason_that_does_not_pass_is_a_refusal() -> None:
    assert is_refused("QOSMaxGRESPerUser") and not is_refused("Priority")


@pytest.mark.parametrize(
    ("written", "code"),
    [(0, 0), (512, 2), (9, 137), (15, 143), (None, 0), ({"signal": {"signal_id": 9}}, 137)],
)
def test_the_exit_code_is_read_from_either_form(written: object, code: int) -> None:
    assert exit_code_of(written) == code
