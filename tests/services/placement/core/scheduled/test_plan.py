"""Rounds carry out what the scheduler of a pool allots."""

from __future__ import annotations

from typing import Any

from shared.contracts.attempts import JobPreempted, JobResized
from shared.contracts.placement import JobHeld, JobPlaced
from shared.contracts.schedules import GpusAllotted
from tests.services.placement.core.lane import job, lane, only
from tests.services.placement.core.scheduled.pools import FAST, SLOW, next_round, type_of, typed


def test_gavel_gives_each_job_the_type_on_which_it_gains_most() -> None:
    pool = typed()
    events = pool.submit(
        job("gains", 4, gpu_speeds={FAST: 8.0, SLOW: 1.0}),
        job("alike", 4, gpu_speeds={FAST: 1.1, SLOW: 1.0}),
    )
    (proposal,) = only(GpusAllotted, events)
    assert {own.job_id: own.gpu_type for own in proposal.allotted} == {"gains": FAST, "alike": SLOW}
    assert (type_of(pool, "gains"), type_of(pool, "alike")) == (FAST, SLOW)
    assert {placed.policy for placed in only(JobPlaced, events)} == {"class_submit+gavel"}


def test_gavel_shares_the_time_of_a_type_between_jobs() -> None:
    """Two gangs that need all fast GPUs take turns, from checkpoint to checkpoint."""
    pool = typed()
    speeds: dict[str, Any] = {
        "gpu_types": (FAST,),
        "gpu_speeds": {FAST: 2.0},
        "checkpoint_interval_s": 60,
    }
    pool.run(job("one", 4, **speeds), job("two", 4, **speeds))
    ran: list[str] = []
    for _ in range(4):
        (running,) = [name for name in ("one", "two") if pool.job(name).phase == "running"]
        ran.append(running)
        stops = only(JobPreempted, next_round(pool))
        if stops:
            assert [(stop.job_id, stop.reason) for stop in stops] == [(running, "outranked")]
            pool.stopped(running)
            pool.feed(after_ms=1000)
            pool.ready(*(n for n in ("one", "two") if pool.job(n).phase == "placed"))
    assert set(ran) == {"one", "two"}


def test_afs_gives_free_gpus_to_an_elastic_job_and_takes_them_for_the_next() -> None:
    pool = lane("a", gpus=4, scheduler="afs", min_residency_s=0)
    elastic = {"min_workers": 1, "max_workers": 4}
    pool.run(job("e", 1, elastic=elastic, walltime_s=100_000, checkpoint_interval_s=60))
    assert len(pool.job("e").allocations) == 4
    pool.submit(job("n", 1, workers=2, elastic=elastic, walltime_s=100), after_ms=1000)
    (resized,) = only(JobResized, next_round(pool))
    assert (resized.job_id, resized.reason) == ("e", "shrink")
    assert resized.to_workers < resized.from_workers == 4
    events = pool.stopped("e")
    events += pool.feed(after_ms=1000)
    assert len(pool.job("e").allocations) == resized.to_workers
    assert len(pool.job("n").allocations) == 4 - resized.to_workers


def test_a_shrunk_job_grows_again_when_the_other_ends() -> None:
    pool = lane("a", gpus=4, scheduler="afs", min_residency_s=0)
    elastic = {"min_workers": 1, "max_workers": 4}
    pool.run(
        job("x", 2, walltime_s=10),
        job("e", 1, elastic=elastic, walltime_s=100_000, checkpoint_interval_s=60),
    )
    assert len(pool.job("e").allocations) == 2
    pool.exited("x", after_ms=1000)
    (resized,) = only(JobResized, next_round(pool))
    assert (resized.reason, resized.to_workers) == ("grow", 4)


def test_a_job_within_its_residency_keeps_its_gpus() -> None:
    pool = typed(min_residency_s=1000)
    both: dict[str, Any] = {"gpu_types": (FAST,), "gpu_speeds": {FAST: 2.0}}
    pool.run(job("one", 4, **both), job("two", 4, **both))
    assert only(JobPreempted, next_round(pool)) == []


def test_a_job_without_an_allotment_waits_until_a_named_time() -> None:
    pool = typed()
    both: dict[str, Any] = {"gpu_types": (FAST,), "gpu_speeds": {FAST: 2.0}}
    events = pool.submit(job("one", 4, **both), job("two", 4, **both))
    (held,) = only(JobHeld, events)
    assert held.detail["allotted_at"] == float(pool.state.schedule.until)
