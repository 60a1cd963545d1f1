"""The line and its shortcuts give what a plain walk over the sorted line gives."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.pool.job import Job
from services.placement.core.pool.queue import (
    NO_ESTIMATE,
    EquivalenceClass,
    Queue,
    QueueKey,
    QueueScan,
    bucket_of,
    least_ms,
)
from services.placement.core.pool.queue_order import queue_by
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.round.greedy import GREEDY, RoundPlanner, plan, rank
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View, view_of
from shared.contracts.admission import JobAdmitted
from shared.contracts.job_spec import PRIORITY_CLASSES
from tests.services.placement.core.lane import Lane, job, lane

MODES = ("strict", "skip", "easy")


def in_order(view: View) -> list[Job]:
    """Return the jobs by reservation, class, overdue wait, score, submission, id."""

    def key(each: Job) -> tuple[bool, int, bool, float, int, str]:
        name = each.job_id
        score = view.scores.get(name)
        negated_score = float("inf") if score is None else -score
        reservations = name not in view.reservations
        return (
            reservations,
            each.tier,
            name != view.overdue.job_id,
            negated_score,
            each.submitted_at,
            name,
        )

    return sorted(view.waiting.values(), key=key)


class PlainScan(QueueScan):
    """The whole queue, sorted anew; no job is ever left out."""

    def __init__(self, view: View) -> None:
        super().__init__(Queue())
        self._jobs = in_order(view)
        self._at = {each.job_id: at for at, each in enumerate(self._jobs)}

    def __iter__(self) -> Iterator[str]:
        for each in self._jobs:
            self.equivalence_class = EquivalenceClass(each.tier, each.shape, 0, each.job_id)
            yield each.job_id

    def position(self, key: QueueKey) -> int:
        return self._at[key.job_id]


class PlainRound(RoundPlanner):
    """Asks every job in the queue, one by one."""

    def __init__(self, view: View, trial: Trial) -> None:
        super().__init__(view, GREEDY, trial)
        self.scan = PlainScan(view)

    def is_last_of_its_class(self, *_: object) -> bool:
        return True


def plainly(view: View) -> Plan:
    with Trial(view.board) as trial:
        return PlainRound(view, trial).run()


def busy_pool(chance: Random, mode: str, preemption: str) -> Lane:
    """Contended, of several kinds of nodes and jobs; a part of it ranked, some inside a claim."""
    pool = lane(queue_mode=mode, preemption=preemption, min_residency_s=chance.choice([0, 30]))
    for n in range(chance.randint(2, 6)):
        kind = chance.choice(["a100", "h100"])
        pool.node(f"n{n}", chance.choice([2, 4, 8]), gpu_type=kind)
    for number in range(chance.randint(10, 60)):
        pool.submit(some_job(chance, number), after_ms=chance.choice([0, 50, 1000, 20_000]))
        names = [name for name in pool.state.jobs if chance.random() < 0.7]
        holders = {name: round(chance.random(), 2) for name in pool.state.running}
        if chance.random() < 0.5:
            pool.score(holders, **{name: round(chance.random(), 1) for name in names})
        for each in list(pool.state.jobs.values()):
            carry_on(pool, each, chance)
    return pool


def crowd(pool: Lane, chance: Random) -> None:
    """Many small jobs that differ in their estimates alone, and no round since they came."""
    pool.pool(
        queue_mode=pool.state.settings.queue_mode,  # type: ignore[union-attr]
        preemption=pool.state.settings.preemption,  # type: ignore[union-attr]
        round_ms=60_000,
    )
    pool.submit(
        *(
            job(
                f"c{n}",
                chance.choice([1, 1, 2]),
                at=chance.randint(1, 9),
                walltime_s=chance.choice([None, round(chance.uniform(1, 100), 3)]),
            )
            for n in range(40)
        )
    )


def some_job(chance: Random, number: int) -> JobAdmitted:
    return job(
        f"j{number}",
        chance.choice([0, 0.5, 1, 1, 2, 4, 8]),
        chance.choice([1, 1, 1, 2, 3]),
        at=chance.randint(1, 9),
        gpu_types=chance.choice([(), (), ("a100",), ("h100",)]),
        priority_class=chance.choice(["normal", "normal", "normal", *PRIORITY_CLASSES]),
        spot=chance.random() < 0.1,
        preemptible=chance.random() < 0.8,
        guaranteed_s=chance.choice([0.0, 0.0, 60.0]),
        walltime_s=chance.choice([None, 10.0, 100.0, round(chance.uniform(1, 1000), 3)]),
        cpus=chance.choice([1, 1, 60]),
        checkpoint_interval_s=60.0,
    )


def carry_on(pool: Lane, each: Job, chance: Random) -> None:
    lot = chance.random()
    if each.phase == "placed" and lot < 0.9:
        pool.ready(each.job_id)
    elif each.phase == "stopping" and lot < 0.3:
        pool.stopped(each.job_id)
    elif each.phase == "running" and lot < 0.02:
        pool.exited(each.job_id)
    elif each.phase == "placed" and lot > 0.98:
        pool.stopped(each.job_id)


@pytest.mark.parametrize("preemption", ["class", "ranked"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(12))
def test_the_plan_is_that_of_a_plain_scan(mode: str, preemption: str, seed: int) -> None:
    chance = Random(f"{mode} {preemption} {seed}")
    pool = busy_pool(chance, mode, preemption)
    if seed % 2:
        crowd(pool, chance)
    moments = [pool.now, pool.now + 1000, pool.now + 9_000, pool.now + 40_000]
    for now in moments:
        view = view_of(pool.state, now)
        result, open_round = plan(view), plainly(view)
        assert result.assignments == open_round.assignments
        assert result.evictions == open_round.evictions
        assert (result.unfinished, result.again_at) == (open_round.unfinished, open_round.again_at)
        assert list(rank(view)) == in_order(view)


@pytest.mark.parametrize("seed", range(6))
def test_positions_are_those_in_the_sorted_line(seed: int) -> None:
    pool = busy_pool(Random(seed), "skip", "class")
    pool.pool(round_ms=60_000, reserve_after_s=0.0)
    view = view_of(pool.state, pool.now)
    round_ = RoundPlanner(view, GREEDY, Trial(view.board))
    for at, each in enumerate(in_order(view)):
        assert round_.scan.position(each.queue_key(view.scores)) == at


@pytest.mark.parametrize("mode", MODES)
def test_the_line_that_is_kept_is_the_one_made_anew(mode: str) -> None:
    pool = busy_pool(Random(mode), mode, "ranked")
    state: Pool = pool.state
    assert state.queue == queue_by(state, state.ranks.scores)
    pool.pool(queue_mode="easy", time_scale=7.0, round_ms=60_000)
    assert state.queue == queue_by(state, state.ranks.scores)
    assert state.tiers == {t: n for t in range(9) if (n := tiers(state)[t])} | dict.fromkeys(
        (t for t in state.tiers if not state.tiers[t]), 0
    )


def tiers(state: Pool) -> list[int]:
    return [sum(each.tier == t for each in state.running.values()) for t in range(9)]


@given(st.integers(1, 10**12))
def test_a_bucket_holds_estimates_of_its_own_length(run_ms: int) -> None:
    bucket = bucket_of(run_ms)
    assert least_ms(bucket) <= run_ms < 4 * max(1, least_ms(bucket))
    assert least_ms(bucket_of(None)) > run_ms and bucket < NO_ESTIMATE


@pytest.mark.parametrize("seed", range(6))
def test_who_yields_does_not_depend_on_who_was_asked_before(seed: int) -> None:
    chance = Random(seed)
    pool = busy_pool(chance, "skip", "ranked")
    view = view_of(pool.state, pool.now + 2_000)
    jobs = [each for each in view.waiting.values() for _ in range(2)]
    chance.shuffle(jobs)
    for each in jobs:
        unscanned = view_of(pool.state, pool.now + 2_000).victims
        assert view.victims.of(each) == unscanned.of(each)
        assert view.victims.any_for(each) == bool(unscanned.of(each))
        assert view.victims.next_for(each) == unscanned.next_for(each)
