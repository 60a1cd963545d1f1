from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from shared.performance.footprint import Footprint
from shared.performance.interleaving import GpuSharing, Stage, StageProfile
from shared.performance.rates import RateTable
from shared.performance.restarts import RestartCosts
from shared.schedulers.hooks import Allotment, Allotments, Hooks, Memory, Neighbours, Placements
from shared.schedulers.registry import scheduler_of
from shared.schedulers.systems.fcfs import Fcfs
from shared.schedulers.view import ClusterView, TypedNode
from simulator.rounds.job import RoundsJob
from simulator.rounds.saved_work import CheckpointedWork, alone_on
from simulator.rounds.work import StepWork
from simulator.rounds.world import RoundsOptions, RoundsWorld

NODES = [TypedNode("n1", "v", 2), TypedNode("n2", "p", 2)]
RATES = RateTable({("v", 1): 2.0, ("v", 2): 4.0, ("p", 1): 1.0})


def job(name: str, seconds: float, submit_s: float = 0.0, gpus: int = 1) -> RoundsJob:
    """Return a job that takes so long on `v`."""
    rate = RATES.consolidated_rate("v", gpus)
    assert rate is not None
    return RoundsJob(name, submit_s, gpus, StepWork(seconds * rate, RATES))


def test_decisions_are_at_multiples_of_the_round_and_ends_between() -> None:
    world = RoundsWorld([job("a", 150.0), job("b", 60.0, 130.0)], NODES, Fcfs(), RoundsOptions(60))
    outcome = world.run()
    assert [own.first_start_s for own in outcome.jobs] == [60.0, 180.0]
    assert [own.jct_s for own in outcome.jobs] == [210.0, 180.0 - 130.0 + 120.0]
    assert outcome.makespan_s == 300.0


def test_a_round_can_end_with_its_work() -> None:
    options = RoundsOptions(360, ends_with_work=True)
    outcome = RoundsWorld([job("a", 100.0, 5.0)], NODES, Fcfs(), options).run()
    assert (outcome.end_s, outcome.rounds) == (105.0, 1)


def test_a_restart_takes_time_without_progress() -> None:
    options = RoundsOptions(60, restarts=RestartCosts(10.0, 5.0))
    outcome = RoundsWorld([job("a", 100.0, gpus=2)], NODES, Fcfs(), options).run()
    assert outcome.jobs[0].jct_s == 60.0 + 20.0 + 100.0
    assert outcome.jobs[0].held_gpu_s == 240.0


class Turns(Hooks):
    """Gives the GPUs to one job after the other; in the third round it proposes nonsense."""

    name: ClassVar[str] = "turns"
    source: ClassVar[str] = "a test"

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        number = memory["number"] = memory.get("number", -1) + 1
        gpus = 2 if number == 2 else 1
        return {ranked[number % len(ranked)]: Allotment("v", gpus)}


def test_a_proposal_that_is_refused_changes_nothing_and_is_noted() -> None:
    jobs = [job("a", 90.0), job("b", 90.0)]
    world = RoundsWorld(jobs, NODES, Turns(), RoundsOptions(60))
    outcome = world.run()
    assert [(own.at_s, own.scheduler, own.violation) for own in outcome.refusals] == [
        (180.0, "turns", "GPUs of job a: 2, must be 1 to 1")
    ]
    b = outcome.jobs[1]
    assert (b.first_start_s, b.end_s, b.restarts) == (120.0, 210.0, 0)
    assert outcome.jobs[0].restarts == 1


@pytest.mark.parametrize("name", ["gavel", "allox", "tiresias", "fcfs"])
def test_all_jobs_end_under_each_scheduler(name: str) -> None:
    jobs = [
        job(f"j{number:02d}", 40.0 + 97.0 * (number % 5), 31.0 * number) for number in range(24)
    ]
    outcome = RoundsWorld(jobs, NODES, scheduler_of(name), RoundsOptions(60)).run()
    assert outcome.unfinished == 0
    assert not outcome.refusals


def test_knowing_speeds_shortens_jobs() -> None:
    jct_s = {}
    for name in ("gavel", "gavel_blind"):
        jobs = []
        for number in range(4):
            fast, slow = ("v", "p") if number % 2 else ("p", "v")
            table = RateTable({(fast, 1): 4.0, (slow, 1): 0.5})
            jobs.append(RoundsJob(f"j{number}", 0.0, 1, StepWork(2400.0, table)))
        world = RoundsWorld(jobs, NODES, scheduler_of(name), RoundsOptions(60))
        jct_s[name] = world.run().mean_jct_s()
    assert jct_s["gavel"] == 660.0
    assert jct_s["gavel_blind"] > 800.0


def test_decisions_on_events_are_when_a_job_comes_or_ends() -> None:
    nodes = [TypedNode("n1", "v", 1)]
    options = RoundsOptions(1e6, on_events=True, restarts=RestartCosts(10.0))
    jobs = [job("a", 100.0, 5.0), job("b", 50.0, 25.0), job("c", 1.0, 1000.0)]
    outcome = RoundsWorld(jobs, nodes, Fcfs(), options).run()
    assert [own.first_start_s for own in outcome.jobs] == [5.0, 115.0, 1000.0]
    assert [own.end_s for own in outcome.jobs] == [115.0, 175.0, 1011.0]


def test_each_decision_may_restart_all_that_run() -> None:
    nodes = [TypedNode("n1", "v", 2)]
    options = RoundsOptions(
        1e6, on_events=True, restarts_at_decisions=True, restarts=RestartCosts(10.0)
    )
    outcome = RoundsWorld([job("a", 100.0), job("b", 30.0, 50.0)], nodes, Fcfs(), options).run()
    assert [own.end_s for own in outcome.jobs] == [120.0, 80.0]


class Pair(Fcfs):
    """Lets all jobs share the GPUs of the first one."""

    name: ClassVar[str] = "pair"

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        return {ranked[0]: Allotment("v", 1)}

    def share(self, view: ClusterView, placements: Placements, memory: Memory) -> Neighbours:
        return {first: tuple(own for own in view.job_by_id if own != first) for first in placements}


def test_neighbours_are_as_fast_as_their_stages_allow() -> None:
    one = StageProfile(4.0, (Stage(3.0), Stage(1.0)))
    two = StageProfile(4.0, (Stage(1.0), Stage(3.0)))
    jobs = [job("a", 60.0), job("b", 120.0)]
    jobs[0].stages, jobs[1].stages = one, two
    options = RoundsOptions(1e6, on_events=True, sharing=GpuSharing(2, (1.0, 1.5)))
    outcome = RoundsWorld(jobs, [TypedNode("n1", "v", 1)], Pair(), options).run()
    assert [own.end_s for own in outcome.jobs] == [90.0, 150.0]
    assert outcome.refusals == []
    jobs = [job("a", 60.0), job("b", 120.0)]
    outcome = RoundsWorld(jobs, [TypedNode("n1", "v", 1)], Pair(), options).run()
    assert [own.end_s for own in outcome.jobs] == [120.0, 180.0]


def test_jobs_that_share_start_one_after_another() -> None:
    jobs = [job("a", 60.0), job("b", 60.0)]
    jobs[0].restart_s, jobs[1].restart_s = 5.0, 7.0
    options = RoundsOptions(1e6, on_events=True, sharing=GpuSharing(2))
    outcome = RoundsWorld(jobs, [TypedNode("n1", "v", 1)], Pair(), options).run()
    assert [own.end_s for own in outcome.jobs] == [132.0, 132.0]


class Waking(Fcfs):
    """Has to decide again seven seconds after each decision, three times."""

    name: ClassVar[str] = "waking"

    def wake_s(self, view: ClusterView, placements: Placements, memory: Memory) -> float | None:
        times = memory.setdefault("times", [])
        times.append(view.now_s)
        return view.now_s + 7.0 if len(times) <= 3 else None


def test_a_scheduler_that_has_to_decide_again_does_so_between_events() -> None:
    options = RoundsOptions(1e6, on_events=True)
    world = RoundsWorld([job("a", 100.0, 5.0)], [TypedNode("n1", "v", 1)], Waking(), options)
    assert [own.end_s for own in world.run().jobs] == [105.0]
    assert world.memory["times"] == [5.0, 12.0, 19.0, 26.0]


def saved(seconds: float, checkpoint_s: float) -> RoundsJob:
    work = CheckpointedWork(seconds, alone_on("v", 1), checkpoint_s=checkpoint_s)
    return RoundsJob("a", 0.0, 1, work)


def test_a_stop_loses_what_follows_the_checkpoint_and_the_first_start_is_free() -> None:
    jobs = [saved(100.0, 25.0), job("b", 60.0)]
    options = RoundsOptions(60.0, restarts=RestartCosts(10.0), first_start_is_free=True)
    world = RoundsWorld(jobs, NODES, Turns(), options)
    world.run({"b"})
    # The first turn of 60 s is stopped after two checkpoints.
    assert jobs[0].work.left_s(Footprint("v", (1,), 2)) == 50.0
    assert [own.held_s for own in jobs] == [60.0, 60.0]


def test_a_run_ends_at_its_horizon() -> None:
    outcome = RoundsWorld([job("a", 1e9)], NODES, Fcfs(), RoundsOptions(60, horizon_s=600.0)).run()
    assert (outcome.unfinished, outcome.end_s) == (1, 600.0)
