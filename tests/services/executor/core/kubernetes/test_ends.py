"""Ends of workers: code, reason, and the first one of a gang."""

from __future__ import annotations

from typing import Any

import pytest

from services.executor.core.kubernetes.ends import lost_failure, rank_ends
from tests.services.executor.core.kubernetes.objects import ended_pod, gang_pod, terminated

EARLY, LATE = "2026-01-01T00:00:10Z", "2026-01-01T00:00:11Z"


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"state": terminated(4)}, 4, ""),
        ({"state": terminated(137, reason="OOMKilled")}, 137, "out_of_memory"),
        ({"state": terminated(137), "reason": "DeadlineExceeded"}, 143, "walltime"),
        ({"state": terminated(137), "reason": "Evicted"}, 137, "step_lost"),
        ({"state": terminated(1), "deleted": True}, 1, "engine_cancelled"),
        ({"state": terminated(1), "marked": True}, 1, ""),
        ({"reason": "OutOfcpu", "message": "no room"}, 137, "engine_refused"),
        ({"reason": "Shutdown"}, 137, "step_lost"),
    ],
)
def test_an_end_has_code_and_reason(fields: dict[str, Any], code: int, reason: str) -> None:
    end = rank_ends({0: gang_pod(phase="Failed", **fields)}, {})[0]
    assert (end.exit_code, end.reason) == (code, reason)


def test_a_program_that_is_missing_is_named() -> None:
    message = 'exec: "nope": executable file not found in $PATH'
    state = terminated(128, reason="StartError", message=message)
    end = rank_ends({0: gang_pod(phase="Failed", state=state)}, {})[0]
    assert (end.exit_code, end.reason, end.detail) == (127, "command_missing", message)
    denied = terminated(128, reason="StartError", message="permission denied")
    assert rank_ends({0: gang_pod(phase="Failed", state=denied)}, {})[0].reason == "start_failed"


def test_of_two_ends_in_one_second_that_of_the_worker_that_ended_by_itself_is_the_first() -> None:
    killed, failed = ended_pod(0, 137, EARLY, marked=True), ended_pod(1, 3, EARLY)
    ends = rank_ends({0: killed, 1: failed}, {failed.uid: ("bad",)})
    assert ends[1].ended_ms < ends[0].ended_ms
    assert (ends[1].output, ends[1].ran_ms) == (("bad",), 7000)


def test_only_the_first_end_is_laid_to_who_deleted_its_pod() -> None:
    failed, deleted = ended_pod(0, 3, EARLY), ended_pod(1, 137, LATE, deleted=True)
    assert rank_ends({0: failed, 1: deleted}, {})[1].reason == ""


def test_a_worker_that_lives_has_no_end() -> None:
    assert rank_ends({0: gang_pod(0)}, {}) == {}
    assert "berth-x" in lost_failure("pods a/berth-x-*").detail
