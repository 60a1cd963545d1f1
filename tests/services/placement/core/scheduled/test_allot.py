"""The proposal of a pool's scheduler: when it is opened, and what stands until it comes."""

from __future__ import annotations

import pytest

from services.placement.core.scheduled import allot
from shared.contracts.placement import JobPlaced, RoundEnded
from shared.contracts.proposals import ProposalReady, ProposedGpus
from shared.contracts.schedules import GpusAllotted, ProposalOpened
from tests.services.placement.core.lane import Lane, job, only
from tests.services.placement.core.scheduled.pools import (
    FAST,
    ROUND_MS,
    SLOW,
    next_round,
    type_of,
    typed,
)


def test_a_job_that_comes_later_gets_free_gpus_before_the_next_proposal_is_due() -> None:
    pool = typed()
    pool.run(job("one", 4, gpu_speeds={FAST: 2.0}))
    assert only(JobPlaced, pool.submit(job("two", 4), after_ms=1000)) == []
    placed = only(JobPlaced, pool.wake())
    assert [event.job_id for event in placed] == ["two"]
    assert pool.now < pool.state.schedule.until - ROUND_MS // 2


def test_proposals_follow_each_other_while_jobs_run() -> None:
    pool = typed()
    pool.run(job("one", 4, gpu_speeds={FAST: 2.0}))
    before = pool.state.schedule.number
    events = next_round(pool)
    assert [event.number for event in only(GpusAllotted, events)] == [before + 1]
    assert only(RoundEnded, events)


def test_the_memory_of_a_scheduler_is_that_of_the_ledger() -> None:
    pool = typed()
    pool.run(job("one", 4, gpu_speeds={FAST: 2.0}))
    assert "shares" in pool.state.schedule.memory


@pytest.mark.parametrize("bound", ["MEMORY_BYTES", "ALLOTTED_BYTES"])
def test_a_proposal_that_fits_in_no_record_is_refused(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(allot, bound, 1)
    (proposal,) = only(GpusAllotted, typed().submit(job("one", 4)))
    assert proposal.refused.startswith("scheduler gavel: ")
    assert proposal.refused.endswith("bytes, must be at most 1")
    assert (proposal.allotted, proposal.memory) == ((), "{}")


def test_a_pool_without_nodes_proposes_nothing_and_decides_when_one_joins() -> None:
    pool = Lane()
    pool.pool(scheduler="afs")
    (proposal,) = only(GpusAllotted, pool.submit(job("one", 1)))
    assert (proposal.allotted, proposal.refused) == ((), "")
    pool.node("a", 4)
    pool.now = max(pool.now, allot.early_ms(pool.state))
    assert [placed.job_id for placed in only(JobPlaced, pool.wake())] == ["one"]


def test_a_part_of_a_gpu_may_take_an_allotted_one_and_the_scheduler_decides_anew() -> None:
    pool = typed()
    pool.run(job("part", 0.5), job("whole", 4, gpu_speeds={FAST: 2.0}))
    assert pool.job("part").phase == "running"
    assert type_of(pool, "part") == pool.state.schedule.allotted["whole"].gpu_type
    pool.wake()
    assert type_of(pool, "whole") != type_of(pool, "part")
    assert pool.now < pool.state.schedule.until - ROUND_MS // 2


def opened(pool: Lane) -> list[ProposalOpened]:
    return [fact.event for fact in pool.facts if isinstance(fact.event, ProposalOpened)]


def unanswered(scheduler: str = "gavel", **settings: object) -> Lane:
    """A pool whose scheduler has made one proposal, and makes no other one."""
    pool = typed(scheduler, **settings)
    pool.run(job("one", 4, gpu_speeds={FAST: 2.0}))
    pool.proposes = False
    next_round(pool)
    return pool


def test_a_proposal_is_opened_and_decide_does_not_wait_for_it() -> None:
    pool = typed()
    pool.proposes = False
    events = pool.submit(job("one", 4))
    assert only(ProposalOpened, events) == opened(pool)
    assert not only(GpusAllotted, events)
    assert not only(JobPlaced, events)
    assert pool.feed(after_ms=allot.PROPOSAL_MS - 1) == []


def test_without_a_first_proposal_the_ranked_queue_decides_after_its_time() -> None:
    pool = typed()
    pool.proposes = False
    pool.submit(job("one", 4))
    events = pool.wake()
    assert pool.now == opened(pool)[0].until
    (event,) = only(GpusAllotted, events)
    assert (event.refused, event.kept) == ("scheduler gavel: made no proposal within 60 s", "")
    assert [placed.job_id for placed in only(JobPlaced, events)] == ["one"]


def test_rounds_go_on_by_the_last_proposal_while_a_scheduler_takes_long() -> None:
    pool = unanswered()
    before = pool.state.schedule.number
    assert pool.state.schedule.open is not None
    pool.submit(job("part", 0.5), after_ms=500)
    assert pool.job("part").phase == "waiting"
    pool.wake()
    assert pool.job("part").phase == "placed"
    assert (pool.state.schedule.number, pool.job("one").phase) == (before, "running")
    assert only(RoundEnded, pool.submit(job("two", 4), after_ms=200))
    open_ = pool.state.schedule.open
    assert open_ is not None
    due = pool.decider.next_wake(pool.state)
    assert due is not None and due >= open_.until, "no round repeats while nothing changes"


def test_a_proposal_that_comes_after_a_round_is_carried_out() -> None:
    pool = unanswered()
    pool.submit(job("two", 4))
    pool.wake()
    assert pool.job("two").phase == "waiting", "the last proposal does not know it"
    two = ProposedGpus(job_id="two", gpu_type=SLOW, gpus=4)
    one = ProposedGpus(job_id="one", gpu_type=FAST, gpus=4)
    pool.feed(pool.an("local", answer(pool, proposed=(one, two))), after_ms=5000)
    assert (pool.job("two").phase, type_of(pool, "two")) == ("placed", SLOW)


def answer(pool: Lane, **fields: object) -> ProposalReady:
    open_ = pool.state.schedule.open
    assert open_ is not None
    return ProposalReady.model_validate({"at_seq": open_.seq, **fields})


def test_where_no_proposal_comes_in_time_the_last_one_is_kept() -> None:
    pool = unanswered()
    last = pool.state.schedule
    open_ = last.open
    assert open_ is not None
    (event,) = only(GpusAllotted, pool.feed(after_ms=allot.PROPOSAL_MS))
    assert (event.kept, event.refused, event.memory) == ("late", "", last.memory)
    assert event.until > open_.until
    assert pool.state.schedule.allotted == last.allotted
    assert (pool.state.schedule.open, pool.job("one").phase) == (None, "running")


def test_a_process_that_died_leaves_the_last_proposal_at_once() -> None:
    pool = unanswered()
    (event,) = only(GpusAllotted, pool.feed(pool.an("local", answer(pool, failed="died"))))
    assert event.kept == "died"


def test_an_answer_to_another_proposal_than_the_open_one_is_dropped() -> None:
    pool = unanswered()
    old = answer(pool, refused="nonsense")
    pool.feed(after_ms=allot.PROPOSAL_MS)
    assert pool.feed(pool.an("local", old)) == []
    next_round(pool)
    assert pool.state.schedule.open is not None
    assert pool.feed(pool.an("local", old)) == []


def test_a_job_that_left_while_a_scheduler_decided_gets_no_gpus() -> None:
    pool = unanswered()
    gone = ProposedGpus(job_id="gone", gpu_type=SLOW, gpus=4)
    (event,) = only(GpusAllotted, pool.feed(pool.an("local", answer(pool, proposed=(gone,)))))
    assert event.allotted == ()


def test_allotments_of_another_scheduler_do_not_stand() -> None:
    pool = unanswered()
    pool.pool(scheduler="afs", min_residency_s=0)
    assert not pool.state.schedule.allotted
    assert opened(pool)[-1].scheduler == "afs"
    assert pool.job("one").phase == "running"


@pytest.mark.parametrize(
    ("wake_s", "rest_s"), [(None, 360), (100.0, 100), (1.0, 36), (-5.0, 36), (9e9, 360)]
)
def test_a_scheduler_decides_again_when_it_wakes_a_tenth_of_a_round_later_at_least(
    wake_s: float | None, rest_s: int
) -> None:
    pool = unanswered()
    until = None if wake_s is None else pool.now / 1000 + wake_s
    (event,) = only(GpusAllotted, pool.feed(pool.an("local", answer(pool, wake_s=until))))
    assert event.until - pool.now == pytest.approx(rest_s * 1000, abs=1)
