"""The decision that stops an elastic job names what it goes on with, and for which job."""

from __future__ import annotations

from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.resize.resize import resize_job
from services.placement.core.round.plan import Resize
from shared.contracts.attempts import JobResized
from tests.services.placement.core.lane import Lane, job, lane


def running() -> Lane:
    pool = lane("a", "b", gpus=4)
    pool.run(job("e", 4, workers=2, elastic={"min_workers": 1, "max_workers": 2}))
    return pool


def resized(pool: Lane, resize: Resize) -> JobResized:
    event = resize_job(pool.state, resize, pool.now).event
    assert isinstance(event, JobResized)
    return event


def test_a_shrink_names_the_job_that_gets_the_gpus() -> None:
    pool = running()
    pool.submit(job("w", 4))
    slots = slots_by_rank(pool.job("e"))
    event = resized(pool, Resize(pool.job("e"), slots[:1], pool.job("w")))
    assert (event.reason, event.by_job_id) == ("shrink", "w")
    assert (event.from_workers, event.to_workers) == (2, 1)
    assert [allocation.node_id for allocation in event.target] == [slots[0].node_id]


def test_a_growth_is_for_no_other_job() -> None:
    pool = running()
    event = resized(pool, Resize(pool.job("e"), slots_by_rank(pool.job("e"))))
    assert (event.reason, event.by_job_id, event.to_workers) == ("grow", "", 2)
