"""A-SRPT's order, delays and placements (INFOCOM'25), by hand."""

from __future__ import annotations

import pytest

from shared.performance.rates import RateTable
from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.systems.a_srpt import DELAY, ASrpt
from shared.schedulers.view import CandidateJob, Estimates, Placement, TypedNode
from simulator.rounds.job import RoundsJob
from simulator.rounds.work import StepWork
from simulator.rounds.world import RoundsOptions, RoundsWorld
from tests.shared.schedulers.views import job, nodes_of, on, rates, view

NODES = (TypedNode("n0", "v", 2), TypedNode("n1", "v", 2))
APART: Placement = (("n0", 1), ("n1", 1))


def gang(name: str, spread: float, submit_s: float = 0.0) -> CandidateJob:
    """Return a job of two GPUs and 100 s, with a rate relative to that when spread."""
    table = RateTable({("v", 2): 1.0}, {("v", 2): spread})
    return job(name, 2, submit_s, Estimates("oracle", 100.0, table))


def held(name: str, node: str) -> CandidateJob:
    return job(name, placement=on(node), estimates=rates({"v": 1.0}, 1, 1e6))


def test_the_order_is_that_of_ends_on_the_virtual_machine() -> None:
    jobs = [
        job("long", 2, 0.0, rates({"v": 1.0}, 2, 100.0)),
        job("short", 1, 10.0, rates({"v": 1.0}, 1, 40.0)),
        job("wide", 4, 20.0, rates({"v": 1.0}, 4, 500.0)),
    ]
    memory: Memory = {}
    order = ASrpt().rank(view(jobs, NODES, now_s=65.0), memory)
    assert order == ["short", "long", "wide"]
    assert memory["queue"] == {"short": 20.0, "long": 60.0}
    assert memory["rest_s"] == {"wide": 495.0}


def test_a_gang_that_spreads_badly_waits_for_a_packed_place_but_not_for_ever() -> None:
    memory: Memory = {"queue": {"heavy": 0.0}}
    jobs = [held("a", "n0"), held("b", "n1"), gang("heavy", 0.5)]
    first = propose(ASrpt(), view(jobs, NODES, now_s=1.0), memory)
    assert set(first.placements) == {"a", "b"}
    assert first.wake_s == DELAY * 100.0
    late = propose(ASrpt(), view(jobs, NODES, now_s=DELAY * 100.0), memory)
    assert late.placements["heavy"] == APART


def test_a_gang_that_spreads_well_starts_in_fragments_beside_one_that_waits() -> None:
    memory: Memory = {"queue": {"heavy": 0.0, "light": 0.5}}
    jobs = [held("a", "n0"), held("b", "n1"), gang("heavy", 0.5), gang("light", 0.95)]
    placements = propose(ASrpt(), view(jobs, NODES, now_s=1.0), memory).placements
    assert placements["light"] == APART
    assert "heavy" not in placements
    packed = propose(ASrpt(), view(jobs[2:3], NODES, now_s=1.0), {"queue": {"heavy": 0.0}})
    assert packed.placements == {"heavy": on("n0", 2)}


def test_free_gpus_take_the_next_of_the_machine_if_none_has_ended_there() -> None:
    jobs = [gang("a", 1.0), job("b", 1, 0.0, rates({"v": 1.0}, 1, 9000.0))]
    placements = propose(ASrpt(), view(jobs, NODES), {}).placements
    assert set(placements) == {"a", "b"}


def test_what_runs_is_never_stopped() -> None:
    table = RateTable({("v", 1): 1.0})
    jobs = [
        RoundsJob(f"j{number}", 5.0 * number, 1, StepWork(100.0 - 20.0 * number, table))
        for number in range(5)
    ]
    options = RoundsOptions(1e6, on_events=True)
    outcome = RoundsWorld(jobs, [TypedNode("n", "v", 1)], ASrpt(), options).run()
    assert {own.restarts for own in outcome.jobs} == {0}
    assert [own.end_s for own in outcome.jobs] == [100.0, 300.0, 220.0, 160.0, 120.0]


def test_an_unknown_length_is_the_mean_of_those_that_have_ended() -> None:
    memory: Memory = {"held_s": {"x": 10.0, "y": 30.0, "z": 0.0}}
    ASrpt().rank(view([job("new", 1, 0.0)], nodes_of(v=2)), memory)
    assert memory["rest_s"] == {"new": pytest.approx(20.0 / 2)}
