"""The proposal of a pool's scheduler: when it comes, and that nonsense is refused whole."""

from __future__ import annotations

from typing import ClassVar

import pytest

from services.placement.core.scheduled import allot
from shared.contracts.placement import JobPlaced, RoundEnded
from shared.contracts.schedules import GpusAllotted
from shared.schedulers.hooks import Allotment, Allotments, Hooks, Memory
from shared.schedulers.view import ClusterView
from tests.services.placement.core.lane import Lane, job, only
from tests.services.placement.core.scheduled.pools import FAST, ROUND_MS, next_round, type_of, typed


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


class Greedy(Hooks):
    """Gives one job more GPUs than there are."""

    name: ClassVar[str] = "nonsense"
    source: ClassVar[str] = "a test"

    def allot(self, view: ClusterView, ranked: object, memory: Memory) -> Allotments:
        return {job.job_id: Allotment(FAST, 4) for job in view.jobs}

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> dict[str, object]:  # type: ignore[override]
        return {job_id: (("f", 4),) for job_id in allotments}


def test_nonsense_is_refused_whole_and_named_and_the_ranked_queue_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(allot, "scheduler_of", lambda name: Greedy())
    pool = typed("nonsense")
    events = pool.submit(job("one", 4), job("two", 4))
    (proposal,) = only(GpusAllotted, events)
    assert proposal.refused.startswith("scheduler nonsense: GPUs of node f: 8")
    assert proposal.allotted == ()
    assert {placed.job_id for placed in only(JobPlaced, events)} == {"one", "two"}


def test_a_scheduler_that_raises_is_refused_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Raises(Greedy):
        def rank(self, view: ClusterView, memory: Memory) -> list[str]:
            return [next(iter(()))]

    monkeypatch.setattr(allot, "scheduler_of", lambda name: Raises())
    (proposal,) = only(GpusAllotted, typed("nonsense").submit(job("one", 4)))
    assert proposal.refused == "scheduler nonsense: StopIteration"


@pytest.mark.parametrize("bound", ["MEMORY_BYTES", "ALLOTTED_BYTES"])
def test_a_proposal_that_fits_in_no_record_is_refused(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(allot, bound, 1)
    (proposal,) = only(GpusAllotted, typed().submit(job("one", 4)))
    assert proposal.refused.startswith("scheduler gavel: ")
    assert proposal.refused.endswith("bytes, must be at most 1")
    assert (proposal.allotted, proposal.memory) == ((), "{}")


def test_the_reason_of_a_refusal_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wordy(Greedy):
        def rank(self, view: ClusterView, memory: Memory) -> list[str]:
            raise ValueError("x" * 10**7)

    monkeypatch.setattr(allot, "scheduler_of", lambda name: Wordy())
    (proposal,) = only(GpusAllotted, typed("nonsense").submit(job("one", 4)))
    assert len(proposal.refused) < 2 * allot.REASON_CHARS


def test_a_scheduler_may_have_fewer_waiting_jobs_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Hooks):
        name: ClassVar[str] = "slow"
        source: ClassVar[str] = "a test"
        most_waiting: ClassVar[int] = 1

    monkeypatch.setattr(allot, "scheduler_of", lambda name: Slow())
    (proposal,) = only(GpusAllotted, typed("slow").submit(job("one", 4), job("two", 4)))
    assert [own.job_id for own in proposal.allotted] == ["one"]


def test_a_pool_without_nodes_proposes_nothing_and_decides_when_one_joins() -> None:
    pool = Lane()
    pool.pool(scheduler="afs")
    (proposal,) = only(GpusAllotted, pool.submit(job("one", 1)))
    assert (proposal.allotted, proposal.refused) == ((), "")
    pool.node("a", 4)
    pool.now = max(pool.now, allot.early_ms(pool.state))
    assert [placed.job_id for placed in only(JobPlaced, pool.wake())] == ["one"]


@pytest.mark.parametrize(
    ("name", "rule"), [("dally", "as no pool can"), ("no_such", "must be one of")]
)
def test_a_scheduler_that_no_pool_can_have_is_refused_by_name(name: str, rule: str) -> None:
    (proposal,) = only(GpusAllotted, typed(name).submit(job("one", 4)))
    assert name in proposal.refused
    assert rule in proposal.refused


def test_a_part_of_a_gpu_may_take_an_allotted_one_and_the_scheduler_decides_anew() -> None:
    pool = typed()
    pool.run(job("part", 0.5), job("whole", 4, gpu_speeds={FAST: 2.0}))
    assert pool.job("part").phase == "running"
    assert type_of(pool, "part") == pool.state.schedule.allotted["whole"].gpu_type
    pool.wake()
    assert type_of(pool, "whole") != type_of(pool, "part")
    assert pool.now < pool.state.schedule.until - ROUND_MS // 2
