"""Text of a failure."""

from __future__ import annotations

from cli.text.failures import (
    MISSING_SHOWN,
    failure_lines,
    failure_of,
    failure_words,
    planned_failure,
    refusal_lines,
)

FAILURE = {
    "reason": "exit_code",
    "detail": "",
    "output": ["Traceback", "ModuleNotFoundError: torch"],
    "rank": 0,
    "node_id": "n1",
    "exit_code": 1,
    "advice": "see `berth logs JOB`",
}


def test_a_failure_is_one_line_with_reason_place_and_exit_code() -> None:
    assert failure_words(FAILURE) == "the program failed (exit_code; rank 0 on n1, exit code 1)"


def test_the_lines_hold_the_last_output_and_the_advice() -> None:
    assert failure_lines({**FAILURE, "permanent": True}) == [
        "failed: the program failed (exit_code; rank 0 on n1, exit code 1)",
        "  | Traceback",
        "  | ModuleNotFoundError: torch",
        "to do: see `berth logs JOB`",
        "it was not tried again: the same start fails on every node",
    ]


def test_the_advice_names_the_job_where_it_is_known() -> None:
    assert "to do: see `berth logs j-1`" in failure_lines(FAILURE, "j-1")


def test_a_refused_submission_says_what_to_do() -> None:
    [line] = refusal_lines("infeasible")
    assert line.startswith("to do: ") and "`berth nodes --pool POOL`" in line
    assert refusal_lines("of_a_later_release") == []


def test_an_unknown_reason_is_shown_as_it_stands() -> None:
    failure = {"reason": "disk_gone", "rank": 2, "node_id": "n3"}
    assert failure_words(failure) == "disk gone (disk_gone; rank 2 on n3)"


def test_only_a_failure_is_a_failure() -> None:
    assert failure_of({"failure": None}) is None
    assert failure_of({}) is None
    assert failure_of({"failure": FAILURE}) == FAILURE


def test_the_text_of_a_program_moves_no_cursor_and_forges_no_line() -> None:
    hostile = {**FAILURE, "detail": "\x1b[2J\nfailed: no", "output": ["\x1b]0;x\x07", "a\rb\nc"]}
    shown = failure_lines(hostile)
    assert shown[0].startswith("failed: the program failed: ?[2J?failed: no (exit_code;")
    assert shown[1:3] == ["  | ?]0;x?", "  | a?b?c"]


def test_a_job_that_fails_as_its_workload_says_failed_on_purpose() -> None:
    job = {"phase": "failed", "exit_code": 1, "spec": {"simulated": {"exit_code": 1}}}
    [line] = planned_failure(job)
    assert "on purpose" in line and "exit code 1" in line
    for other in ({"exit_code": 137}, {"phase": "running"}, {"spec": {"simulated": None}}):
        assert planned_failure({**job, **other}) == []
    succeeded = {"phase": "succeeded", "exit_code": 0, "spec": {"simulated": {"exit_code": 0}}}
    assert planned_failure(succeeded) == []


def test_what_one_node_lacks_is_not_claimed_of_all() -> None:
    lines = failure_lines({"reason": "workdir_missing", "permanent": True, "node_id": "n1"})
    assert lines[-1] == MISSING_SHOWN
