"""A request for a proposal and its answer: nonsense is refused whole, and named."""

from __future__ import annotations

from typing import ClassVar

import pytest

from services.placement.core.scheduled import request
from shared.contracts.placement import JobPlaced
from shared.contracts.schedules import GpusAllotted
from shared.schedulers.hooks import Allotment, Allotments, Hooks, Memory
from shared.schedulers.view import ClusterView
from tests.services.placement.core.lane import job, only
from tests.services.placement.core.scheduled.pools import FAST, typed


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
    monkeypatch.setattr(request, "scheduler_of", lambda name: Greedy())
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

    monkeypatch.setattr(request, "scheduler_of", lambda name: Raises())
    (proposal,) = only(GpusAllotted, typed("nonsense").submit(job("one", 4)))
    assert proposal.refused == "scheduler nonsense: StopIteration"


def test_the_reason_of_a_refusal_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wordy(Greedy):
        def rank(self, view: ClusterView, memory: Memory) -> list[str]:
            raise ValueError("x" * 10**7)

    monkeypatch.setattr(request, "scheduler_of", lambda name: Wordy())
    (proposal,) = only(GpusAllotted, typed("nonsense").submit(job("one", 4)))
    assert len(proposal.refused) < 2 * request.REASON_CHARS


def test_a_scheduler_may_have_fewer_waiting_jobs_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Hooks):
        name: ClassVar[str] = "slow"
        source: ClassVar[str] = "a test"
        most_waiting: ClassVar[int] = 1

    monkeypatch.setattr(request, "scheduler_of", lambda name: Slow())
    (proposal,) = only(GpusAllotted, typed("slow").submit(job("one", 4), job("two", 4)))
    assert [own.job_id for own in proposal.allotted] == ["one"]


@pytest.mark.parametrize(
    ("name", "rule"), [("muri", "as no pool can"), ("no_such", "must be one of")]
)
def test_a_scheduler_that_no_pool_can_have_is_refused_by_name(name: str, rule: str) -> None:
    (proposal,) = only(GpusAllotted, typed(name).submit(job("one", 4)))
    assert name in proposal.refused
    assert rule in proposal.refused


def test_a_memory_that_no_record_holds_is_refused_where_it_was_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Remembers(Greedy):
        def rank(self, view: ClusterView, memory: Memory) -> list[str]:
            memory["past"] = "x" * request.MEMORY_BYTES
            return super().rank(view, memory)

    monkeypatch.setattr(request, "scheduler_of", lambda name: Remembers())
    (proposal,) = only(GpusAllotted, typed("nonsense").submit(job("one", 4)))
    assert "must be at most 200000" in proposal.refused and proposal.memory == "{}"
