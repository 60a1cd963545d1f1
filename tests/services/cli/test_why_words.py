"""Why a job waits, in words with their numbers."""

from __future__ import annotations

from services.cli.why_words import phase, words


def test_a_held_job_says_what_is_short_and_by_how_much() -> None:
    said = words("job.held.v1", {"reason": "no_capacity", "short_gpus": 8.0, "detail": {"free": 2}})
    assert said == "too few GPUs are free; free 2, short gpus 8"
    assert phase("job.held.v1") == "waiting"


def test_a_reason_that_no_table_knows_is_shown_as_it_stands() -> None:
    assert words("job.deferred.v1", {"reason": "new_reason"}) == "new reason"


def test_a_placed_job_says_where_and_after_how_long() -> None:
    data = {"allocations": [{"node_id": f"n{i}"} for i in range(6)], "waited_ms": 1500,
            "policy": "fcfs"}  # fmt: skip
    assert words("job.placed.v1", data) == "on n0, n1, n2, n3 and 2 more after 1.5 s, by fcfs"


def test_an_unknown_type_is_no_failure() -> None:
    assert (phase("job.resized.v9"), words("job.resized.v9", {})) == ("resized", "-")
