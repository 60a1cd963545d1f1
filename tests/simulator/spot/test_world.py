"""Small pools with known answers, and invariants of drawn ones under each of the rules."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from services.admission.core.spot.quota import SpotQuotaSettings
from simulator.spot.jobs import SpotDemand, SpotTraceJob, spot_trace
from simulator.spot.rules import BLOCKING, PASSING, SpotRules, gfs, small_first
from simulator.spot.world import Run, SpotWorld

DAYS_S = 3 * 86_400.0
SETTINGS = SpotQuotaSettings()
RULES = {
    "blocking": BLOCKING,
    "passing": PASSING,
    "gfs": gfs(SETTINGS),
    "last_week": gfs(SETTINGS, "last_week"),
    "static": gfs(SETTINGS, "static", feedback=False),
    "small_first": small_first(SETTINGS),
}


def guaranteed(number: int, submit_s: float, duration_s: float, gpus: int = 8) -> SpotTraceJob:
    return SpotTraceJob(number, 0, False, max(1, gpus // 8), min(8, gpus), submit_s, duration_s)


def spot(number: int, submit_s: float, duration_s: float, gpus: int = 8) -> SpotTraceJob:
    return guaranteed(number, submit_s, duration_s, gpus)._replace(is_spot=True, guarantee_h=1)


def world_of(jobs: list[SpotTraceJob], rules: SpotRules, nodes: int = 1) -> SpotWorld:
    return SpotWorld(jobs, np.full(nodes, 8, np.int64), rules, DAYS_S)


def test_an_evicted_job_loses_the_work_since_its_checkpoint_and_a_restart() -> None:
    """The spot job runs 5,000 s, loses 1,400 s, waits for the guaranteed job and its restart."""
    world = world_of([spot(0, 100.0, 7200.0), guaranteed(1, 5100.0, 1000.0)], PASSING)
    outcome = world.run()
    assert outcome.evictions == 1
    assert outcome.lost_gpu_s == 8 * 1400
    assert outcome.ends_s == {1: 5100 + 1000 + 40, 0: 6140 + 3600 + 40}
    assert outcome.waits_s[True][0] == 1040
    assert world.log.all_of() == (1, 3)


def test_a_guaranteed_job_evicts_none_while_it_fits_elsewhere() -> None:
    for rules in (PASSING, gfs(SETTINGS)):
        jobs = [spot(0, 1.0, 7200.0), guaranteed(1, 500.0, 1000.0)]
        assert world_of(jobs, rules, nodes=2).run().evictions == 0


def test_a_spot_job_evicts_none() -> None:
    jobs = [guaranteed(0, 1.0, 3600.0), spot(1, 10.0, 60.0), spot(2, 20.0, 60.0)]
    outcome = world_of(jobs, PASSING).run()
    assert outcome.evictions == 0
    assert outcome.waits_s[True] == {1: 3591.0, 2: 3641.0}


def test_a_gang_that_blocks_the_queue_keeps_small_jobs_waiting() -> None:
    jobs = [guaranteed(0, 0.5, 3600.0), spot(1, 10.0, 60.0, gpus=16), spot(2, 20.0, 60.0, gpus=1)]
    blocked = world_of(jobs, BLOCKING, nodes=2).run()
    passed = world_of(jobs, PASSING, nodes=2).run()
    assert blocked.waits_s[True][2] == 3640.5
    assert passed.waits_s[True][2] == 0


def test_a_quota_keeps_room_for_the_demand_of_the_last_week() -> None:
    """A guaranteed job took all GPUs two days before: the spot job waits, and is not evicted."""
    past = guaranteed(0, -2 * 86_400.0, 3600.0)
    jobs = [past, spot(1, 10.0, 7200.0), guaranteed(2, 3000.0, 600.0)]
    held = world_of(jobs, gfs(SETTINGS, "last_week")).run()
    assert held.evictions == 0
    assert 1 not in held.ends_s
    assert world_of(jobs, PASSING).run().evictions == 1


class Checked(SpotWorld):
    """A world that checks the invariants at each start and eviction."""

    __slots__ = ("evicted",)

    def __post_init__(self) -> None:
        SpotWorld.__post_init__(self)
        self.evicted: list[Run] = []

    def _run(self, *arguments: object) -> None:
        SpotWorld._run(self, *arguments)  # type: ignore[arg-type]
        nodes = self.nodes
        assert nodes.free.min() >= 0
        assert (nodes.free + nodes.guaranteed + nodes.spot == self.gpus).all()

    def _start_spot(self, waiting: object) -> bool:
        before = len(self.evicted)
        started = SpotWorld._start_spot(self, waiting)  # type: ignore[arg-type]
        job = waiting.job  # type: ignore[attr-defined]
        assert len(self.evicted) == before, "a spot job never evicts"
        if started:
            assert self._used[True] <= self.quota.of(job.guarantee_h)
            assert len(self.runs[job.number].rows) == job.workers
        return started

    def _evict(self, run: Run) -> None:
        assert run.job.is_spot
        failed = self.log.all_of(run.job.guarantee_h).failed
        SpotWorld._evict(self, run)
        self.evicted.append(run)
        assert self.log.all_of(run.job.guarantee_h).failed == failed + 1


@pytest.fixture(scope="module", params=list(RULES))
def checked(request: pytest.FixtureRequest) -> Iterator[Checked]:
    jobs = spot_trace(SpotDemand(gpus=128, days=3, seed=100, guaranteed_load=0.8, spot_load=0.3))
    world = Checked(jobs, np.full(16, 8, np.int64), RULES[request.param], DAYS_S)
    world.run()
    yield world


def test_each_eviction_is_a_failed_guarantee_for_a_guaranteed_job(checked: Checked) -> None:
    """T6 and T7: only guaranteed jobs evict, only spot jobs are evicted, each one is counted."""
    assert checked.log.all_of().failed == len(checked.evicted) == checked.outcome.evictions


def test_every_job_that_ended_ran_as_long_as_it_takes(checked: Checked) -> None:
    outcome = checked.outcome
    for job in checked.jobs:
        if job.submit_s >= 0 and job.number in outcome.ends_s:
            took_s = outcome.ends_s[job.number] - job.submit_s
            wait_s = outcome.waits_s[job.is_spot][job.number]
            assert took_s >= wait_s + job.duration_s - 1e-6


def test_the_same_jobs_have_the_same_outcome() -> None:
    jobs = spot_trace(SpotDemand(gpus=64, days=2, seed=3, spot_load=0.3))
    rules = small_first(SETTINGS)
    first, again = (
        SpotWorld(jobs, np.full(8, 8, np.int64), rules, 2 * 86_400.0).run() for _ in range(2)
    )
    assert first.figures == again.figures
