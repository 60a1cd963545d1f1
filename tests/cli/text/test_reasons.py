"""Reasons for which a job waits, in words with their numbers."""

from __future__ import annotations

import time
from typing import get_args

from cli.text.phases import phase
from cli.text.protections import PROTECTIONS
from cli.text.reasons import deciding, other_pool_lines, start_lines, wait_line, words
from cli.text.times import clock
from services.placement.core.pool.job import ProtectionRule


def test_a_held_job_says_what_is_short_and_by_how_much() -> None:
    text = words("job.held.v1", {"reason": "no_capacity", "short_gpus": 8.0, "detail": {"free": 2}})
    assert text == "too few GPUs are free; free 2, short gpus 8"
    assert phase("job.held.v1") == "waiting"


def test_a_held_job_says_what_protects_the_jobs_of_lower_rank_and_until_when() -> None:
    until = 60_000 + time.time_ns() // 1_000_000
    detail = {"free": 2, "protected_by": "checkpoint", "protected_until": float(until)}
    text = words("job.held.v1", {"reason": "no_capacity", "detail": detail})
    after = f"jobs of lower rank are stopped just after their next checkpoint, until {clock(until)}"
    assert text == f"too few GPUs are free; free 2; {after}"
    detail = {"protected_by": "no_checkpoints"}
    text = words("job.held.v1", {"reason": "no_capacity", "detail": detail})
    assert text.endswith("keep no checkpoints, so only a higher class stops them")


def test_an_overdue_job_says_until_when_gpus_are_reserved_for_it_and_what_outlasted_that() -> None:
    at = 60_000 + time.time_ns() // 1_000_000
    detail: dict[str, object] = {"reserved_until": float(at)}
    text = words("job.held.v1", {"reason": "no_capacity", "detail": detail})
    reserved = "it waited so long that GPUs are reserved for it as they become free, at most until"
    assert text == f"too few GPUs are free; {reserved} {clock(at)}"
    detail = {"not_reserved_before": float(at), "outlasted_by": "j-1"}
    text = words("job.held.v1", {"reason": "no_capacity", "detail": detail})
    assert text == (
        "too few GPUs are free; its reservation lapsed, and the next one does not begin before "
        f"{clock(at)}; j-1 has run since before that reservation"
    )


def test_a_job_that_waits_for_faster_gpus_says_until_when() -> None:
    at = 60_000 + time.time_ns() // 1_000_000
    detail: dict[str, object] = {"free_gpus": 1.0, "faster_at": float(at)}
    text = words("job.held.v1", {"reason": "no_capacity", "detail": detail})
    sooner = "by its speeds and run time it is over sooner on faster GPUs"
    assert text == f"{sooner}, expected at {clock(at)}; free gpus 1"


def test_every_rule_that_protects_has_its_words() -> None:
    assert PROTECTIONS.keys() == set(get_args(ProtectionRule)) - {""}


def test_a_preempted_job_says_for_whom_and_what_it_cost() -> None:
    data = {
        "reason": "outranked",
        "by_job_id": "big",
        "lost_work_s": 12.0,
        "terms": {"restart_s": 60.0, "starts": 3.0, "ran_ms": 9.0},
    }
    text = "a job of a better rank needed the GPUs (for big)"
    assert words("job.preempted.v1", data) == (
        f"{text}; it cost 12 s of work and a restart of 60 s; it had started 3 times"
    )
    data["terms"] = {"restart_s": 42.0, "restart_measured": 1.0}
    measured = f"{text}; it cost 12 s of work and a restart of 42 s (as its last start took)"
    assert words("job.preempted.v1", data) == measured
    older = {"reason": "node_drained", "lost_work_s": 0.0, "by_job_id": ""}
    assert words("job.preempted.v1", older) == "its node was drained"
    lost = {"reason": "node_lost", "lost_work_s": 12.5}
    assert words("job.preempted.v1", lost) == "its node was lost; it cost 12.5 s of work"


def test_a_reason_that_no_table_knows_is_shown_as_it_stands() -> None:
    assert words("job.deferred.v1", {"reason": "new_reason"}) == "new reason"


def test_a_placed_job_says_where_and_after_how_long() -> None:
    data = {
        "allocations": [{"node_id": f"n{i}"} for i in range(6)],
        "waited_ms": 1500,
        "policy": "fcfs",
    }
    assert words("job.placed.v1", data) == "on n0, n1, n2, n3 and 2 more after 1.5 s, by fcfs"


def test_a_move_says_where_to_and_a_resize_how_far() -> None:
    data = {"to_nodes": ["n1", "n2"], "reason": "drain", "lost_work_s": 5.0, "target": [{}]}
    assert words("job.migrated.v1", data) == "to n1, n2: its node is drained; it cost 5 s of work"
    data = {"to_nodes": ["n2"], "reason": "defragment", "by_job_id": "big"}
    assert words("job.migrated.v1", data) == "to n2: defragmentation for larger jobs (for big)"
    assert phase("job.migrated.v1") == "migrating"
    data = {"from_workers": 2, "to_workers": 8, "reason": "grow"}
    text = "from 2 to 8 workers: it grows into idle GPUs"
    assert words("job.resized.v1", data) == text


def test_an_unknown_type_is_no_failure() -> None:
    assert (phase("job.resized.v9"), words("job.resized.v9", {})) == ("resized", "-")


def test_a_waiting_job_says_its_place_in_line_and_the_scores_around_it() -> None:
    line = {
        "base_policy": "fcfs",
        "learned": "venus",
        "runtime": "history",
        "model_sha256": "ab" * 32,
        "waiting": 40,
        "position": 3,
        "score": 0.25,
        "score_ahead": 0.5,
        "best_score": 2.0,
    }
    assert deciding(line, None) == [
        "number 3 of 40 in the queue, by fcfs, run times from history, re-ranked by venus"
        " (model abababababab): score 0.25, ahead 0.5, first 2"
    ]
    unranked = {"base_policy": "sjf", "waiting": 900, "position": None}
    assert deciding(unranked, None) == ["not among the first of 900 in the queue, by sjf"]


def test_a_placed_job_says_what_decided() -> None:
    placing = {
        "policy": "fcfs+cpsat",
        "solver": "optimal",
        "score": 1.5,
        "model_sha256": "cd" * 32,
        "terms": {"objective": 12.0, "bound": 13.0, "position": 0.0},
    }
    assert deciding(None, placing) == [
        "placed by fcfs+cpsat, solver optimal, score 1.5 (model cdcdcdcdcdcd)",
        "  bound 13, objective 12, position 1",
    ]
    assert deciding(None, {"policy": "class_submit+best_fit"}) == [
        "placed by class_submit+best_fit"
    ]


def test_a_running_job_has_a_row_of_its_own() -> None:
    assert phase("job.started.v1") == "running"
    assert words("job.started.v1", {"attempt": 1}) == "all workers were ready"


def test_a_failed_start_names_its_reason_place_and_detail() -> None:
    failure = {"reason": "command_missing", "detail": "python", "rank": 1, "node_id": "n2"}
    text = words("job.start-failed.v1", {"reason": "refused", "failure": failure})
    assert text == (
        "the program or its interpreter does not exist on the node: python"
        " (command_missing; rank 1 on n2)"
    )


def estimate(*spans_ms: int) -> dict[str, object]:
    """Return an estimate whose p10, p50 and p90 are that far from now, ms."""
    now_ms = time.time_ns() // 1_000_000
    ends = zip(("p10_at", "p50_at", "p90_at"), spans_ms, strict=True)
    return {**{name: now_ms + ms for name, ms in ends}, "coverage": 0.79, "samples": 40}


def test_an_estimate_that_has_passed_is_not_shown() -> None:
    for spans_ms in ((0, 0, 0), (-9_000, -8_000, -7_000)):
        assert start_lines(estimate(*spans_ms)) == [
            "no estimate of its start holds at present; the next one follows"
        ]
    (line,) = start_lines(estimate(-60_000, -30_000, 3_600_000))
    assert line.startswith("starts between ") and "as likely as not" not in line


def test_an_estimate_of_an_old_recording_holds_at_its_last_moment() -> None:
    at = 1_700_000_000_000
    start = {"p10_at": at, "p50_at": at + 60_000, "p90_at": at + 90_000, "of": "job"}
    (line,) = start_lines(start, at)
    assert line.startswith("starts between ") and "as likely as not by" in line
    (line,) = start_lines(start, at + 60_000)
    assert line.startswith("starts between ") and "as likely as not by" not in line
    for passed in (at + 90_000, None):
        (line,) = start_lines(start, passed)
        assert line.startswith("no estimate of its start holds")


def test_a_start_is_an_interval_with_its_record() -> None:
    start = estimate(60_000, 120_000, 3_600_000)
    (line,) = start_lines(start)
    early, middle, late = (clock(start[name]) for name in ("p10_at", "p50_at", "p90_at"))
    assert line.startswith(
        f"starts between {early} and {late} with 80 %, as likely as not by {middle}"
    )
    assert line.endswith("; 79% of the pool's last 40 intervals held")
    (line,) = start_lines({**start, "coverage": None, "samples": 0})
    assert "held" not in line
    (line,) = start_lines({**start, "of": "queue"})
    assert "as your last job before it with as many GPUs" in line
    (line,) = start_lines({**start, "of": "queue", "pool": "side"})
    assert "in pool side (behind your last job there with as many GPUs)" in line
    assert start_lines(None) == []


def test_the_other_pools_of_a_job_are_named_with_what_keeps_it_from_them() -> None:
    pools = [
        {"pool": "a", "rule": None, "waiting": 3, "start": None},
        {"pool": "b", "rule": None, "waiting": 0, "start": None},
        {"pool": "c", "rule": "no such pool", "waiting": 0, "start": None},
    ]
    room = "its free GPUs, cores and memory and your quota have room"
    assert other_pool_lines(pools) == [
        f"it goes to pool a as soon as no job waits there (3 now) and {room}",
        f"it goes to pool b as soon as {room}",
        "it cannot go to pool c now: no such pool",
    ]
    assert other_pool_lines(None) == []


def test_a_follower_reads_that_a_job_waits_and_then_that_it_runs() -> None:
    def line(phase: str, attempt: int, reason: str = "", *, is_shown: bool = False) -> str:
        status = {"phase": phase, "attempt": attempt, "reason": reason}
        return wait_line(status, is_shown=is_shown)

    assert line("waiting", 1, "no_capacity") == "the job waits: too few GPUs are free"
    again = "the job waits again after attempt 1: too few GPUs are free"
    assert line("waiting", 2, "no_capacity") == again
    assert line("backoff", 2, "odd") == "the job waits again after attempt 2: odd"
    assert line("admitted", 0) == "the job waits: admitted"
    assert line("running", 2, is_shown=True) == "attempt 2 runs"
    for other in ("running", "placed", "stopping", "failed"):
        assert line(other, 1) == ""


def test_a_follower_reads_why_the_attempt_before_failed() -> None:
    failure = {"reason": "image_unreachable", "detail": "down", "rank": 0, "node_id": "n1"}
    status = {"phase": "waiting", "attempt": 2, "reason": "refused", "failure": failure}
    assert wait_line(status, is_shown=True) == (
        "the job waits again after attempt 1: the registry of the image does not answer: down"
        " (image_unreachable; rank 0 on n1)"
    )
    held = wait_line({**status, "reason": "no_capacity"}, is_shown=True)
    assert held == "the job waits again after attempt 1: too few GPUs are free"


def test_a_lost_node_is_named_with_its_silence_and_the_bound() -> None:
    data = {"reason": "node_lost", "terms": {"silent_s": 774.2, "lost_after_s": 774.0}}
    text = "its node was lost after 774 s without a heartbeat (774 s are allowed)"
    assert words("job.preempted.v1", data) == text


def test_a_lost_worker_is_named_with_what_its_stop_cost() -> None:
    terms = {"workers_lost": 1.0, "restart_s": 30.0, "starts": 2.0}
    data = {"reason": "node_lost", "lost_work_s": 12.0, "terms": terms}
    text = words("job.preempted.v1", data)
    assert text.startswith("its node lost a worker: the process that held it died; it cost 12 s of")
    text = words("job.preempted.v1", {**data, "terms": {**terms, "lease_over": 1.0}})
    assert text.startswith("the lease of its node was over, or was ended, and its workers with it;")


def test_a_hold_says_how_many_stops_for_it_were_put_off() -> None:
    until = 60_000 + time.time_ns() // 1_000_000
    detail = {"protected_by": "progress", "protected_until": float(until), "deferred_stops": 2.0}
    text = words("job.held.v1", {"reason": "no_capacity", "detail": detail})
    assert text.endswith(f"until {clock(until)}; 2 of them would then be stopped for this job")


def test_a_placement_says_whether_it_is_on_the_nodes_of_a_scheduler() -> None:
    data = {"allocations": [{"node_id": "a"}], "waited_ms": 1000, "policy": "fcfs+dally"}
    own = words("job.placed.v1", {**data, "terms": {"chosen_nodes": 1.0}})
    assert own == "on a after 1.0 s, by fcfs+dally, on the nodes that the scheduler chose"
    other = words("job.placed.v1", {**data, "terms": {"chosen_nodes": 0.0}})
    assert other.startswith(
        "on a after 1.0 s, by fcfs+dally; those that the scheduler chose had no"
    )
    assert words("job.placed.v1", {**data, "terms": {}}) == "on a after 1.0 s, by fcfs+dally"


def test_a_job_that_waits_for_its_schedulers_nodes_names_them() -> None:
    detail = {"chosen_nodes": "a, b", "free_gpus": 4.0}
    line = words("job.held.v1", {"reason": "no_capacity", "detail": detail})
    assert "the scheduler of the pool chose a, b for it, where others still stop" in line
    assert "chosen nodes" not in line
