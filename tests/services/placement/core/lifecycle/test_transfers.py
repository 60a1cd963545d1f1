"""A job leaves its pool only while it waits without GPUs, and takes its work along."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from shared.contracts.attempts import JobCancelled
from shared.contracts.base import Event
from shared.contracts.transfers import JobTransferRequested, transferred_job_id
from tests.services.placement.core.lane import Lane, job, kinds, lane, only

POOLS = ("p", "other")


def transfer(pool: Lane, job_id: str, to: str = "other") -> list[Event]:
    request = JobTransferRequested(job_id=job_id, tenant="t", to_pool=to)
    return pool.feed(pool.an("admission", request))


def test_a_waiting_job_ends_here_and_names_its_id_there() -> None:
    pool = lane("n")
    pool.submit(job("a", 16, pools=POOLS))
    (end,) = only(JobCancelled, transfer(pool, "a"))
    assert end.transferred_to is not None
    assert end.transferred_to.job_id == transferred_job_id("t", "other", "a")
    assert kinds(transfer(pool, "a")) == []
    assert "JobPlaced" not in kinds(pool.node("m", 16))


@pytest.mark.parametrize("to", ["p2", "elsewhere"])
def test_a_pool_that_the_job_does_not_name_is_ignored(to: str) -> None:
    pool = lane("n")
    pool.submit(job("a", 16, pools=POOLS))
    assert "JobCancelled" not in kinds(transfer(pool, "a", to))


def test_a_job_with_gpus_stays_at_every_stage_until_they_are_back() -> None:
    pool = lane("n")
    pool.submit(job("a", 8, pools=POOLS))
    assert "JobCancelled" not in kinds(transfer(pool, "a"))
    pool.ready("a")
    assert "JobCancelled" not in kinds(transfer(pool, "a"))
    pool.submit(job("urgent", 8, priority_class="high"))
    assert pool.job("a").phase == "stopping"
    assert "JobCancelled" not in kinds(transfer(pool, "a"))
    pool.stopped("a")
    assert pool.job("a").phase == "waiting"
    assert "JobCancelled" in kinds(transfer(pool, "a"))


def test_a_preempted_job_takes_its_checkpoint_along() -> None:
    pool = lane("n")
    work: dict[str, Any] = {"simulated": {"duration_s": 100.0}, "checkpoint_interval_s": 10.0}
    pool.run(job("a", 8, pools=POOLS, **work))
    pool.submit(job("urgent", 8, priority_class="high"), after_ms=25_000)
    pool.stopped("a")
    (end,) = only(JobCancelled, transfer(pool, "a"))
    assert end.transferred_to is not None
    assert (end.transferred_to.done_s, end.transferred_to.resumes) == (20.0, True)


def test_what_came_along_holds_for_the_first_start_alone() -> None:
    before = {
        "from_job_id": "x",
        "from_pool": "other",
        "first_job_id": "x",
        "transfers": 1,
        "failures": 1,
        "resumes": True,
        "done_s": 5.0,
    }
    pool = lane("n")
    pool.run(job("a", 8, pools=POOLS, transferred=before, retry={"max_attempts": 3}))
    assert (pool.job("a").failures, pool.job("a").resumes, pool.job("a").done_s) == (1, True, 5.0)
    pool.exited("a", code=1)
    assert pool.job("a").phase == "parked"
    assert "JobCancelled" not in kinds(transfer(pool, "a"))
    pool.readmit("a", 2)
    assert (pool.job("a").failures, pool.job("a").resumes, pool.job("a").done_s) == (2, False, 0.0)
    assert "JobFailed" in kinds([*pool.ready("a"), *pool.exited("a", code=1)])


STEPS = ("transfer", "ready", "exit", "preempt", "stop", "cancel", "join")


@examples(st.lists(st.sampled_from(STEPS), max_size=10))
def test_a_job_that_left_has_no_allocation_then_or_later(steps: list[str]) -> None:
    pool = lane("n")
    events = list(pool.submit(job("a", 8, pools=POOLS)))
    joined = 0
    for step in steps:
        known = "a" in pool.state.jobs
        match step:
            case "transfer":
                events += transfer(pool, "a")
            case "cancel":
                events += pool.cancel("a")
            case "join":
                joined += 1
                events += pool.node(f"m{joined}")
            case "preempt":
                events += pool.submit(job(f"u{len(events)}", 8, priority_class="high"))
            case "ready" if known and pool.job("a").phase == "placed":
                events += pool.ready("a")
            case "exit" if known and pool.job("a").phase == "running":
                events += pool.exited("a")
            case "stop" if known and pool.job("a").phase == "stopping":
                events += pool.stopped("a")
    held = 0
    for event in events:
        if getattr(event, "job_id", "") != "a":
            continue
        match event.TYPE:
            case "job.placed.v1":
                held += 1
            case "allocation.released.v1":
                held -= 1
            case "job.cancelled.v1" if getattr(event, "transferred_to", None):
                assert held == 0
                break
    else:
        return
    after = events[events.index(event) + 1 :]
    assert not [later for later in after if getattr(later, "job_id", "") == "a"]
