from __future__ import annotations

import json
import random
from dataclasses import replace

from shared.performance.links import GangSteps, LinkTier
from shared.schedulers.check import check
from shared.schedulers.compose import Proposal, propose
from shared.schedulers.hooks import Memory
from shared.schedulers.systems.dally import Dally
from shared.schedulers.view import CandidateJob, ClusterView, Placement, footprint_of
from tests.shared.schedulers.racked import INSENSITIVE, SENSITIVE, TO_RACKS, gang, racks_of
from tests.shared.schedulers.views import on, view

NODES = racks_of((4,), (4,))
BUSY = (gang("x", 3, placement=on("n11", 3)), gang("y", 3, placement=on("n21", 3)))
"""One GPU is free in each rack."""
FIRST_S = Dally.timers.first_s
ROUND_S = 600.0


def proposed(now: ClusterView, memory: Memory | None = None) -> Proposal:
    proposal = propose(Dally(), now, {} if memory is None else memory)
    check(now, proposal)
    return proposal


def test_a_job_declines_a_far_tier_until_its_timers_have_run() -> None:
    """The gang fits a node, so it waits for a node and then for a rack."""
    memory: Memory = {}
    new = gang("new", 2)
    for now_s, is_placed in ((0.0, False), (FIRST_S - 1, False), (2 * FIRST_S, True)):
        proposal = proposed(view([*BUSY, new], NODES, now_s), memory)
        assert ("new" in proposal.placements) is is_placed
    assert proposal.placements["new"] == (("n11", 1), ("n21", 1))


def test_what_one_job_declines_is_offered_to_the_next() -> None:
    jobs = [*BUSY, gang("first", 2), gang("second", 2, INSENSITIVE, submit_s=1.0)]
    placements = proposed(view(jobs, NODES, 10.0)).placements
    assert "first" not in placements
    assert placements["second"] == (("n11", 1), ("n21", 1))


def test_jobs_that_the_network_does_not_slow_down_wait_for_nothing() -> None:
    for steps in (INSENSITIVE, None):
        assert "new" in proposed(view([*BUSY, gang("new", 2, steps)], NODES)).placements


def test_a_gang_larger_than_a_node_does_not_wait_for_one() -> None:
    nodes = racks_of((2, 2))
    placements = proposed(view([gang("new", 4, TO_RACKS)], nodes)).placements
    assert placements == {"new": (("n11", 2), ("n12", 2))}


def test_waits_that_end_tune_the_timer_of_their_tier_and_size() -> None:
    memory: Memory = {}
    proposed(view([gang("a", 4, TO_RACKS, submit_s=10.0)], NODES, 360.0), memory)
    running = gang("a", 4, TO_RACKS, submit_s=10.0, placement=on("n11", 4), held_s=360.0)
    proposed(view([running], NODES, 720.0), memory)
    assert memory["waits"] == {"node:4": [[360.0, 350.0]]}
    json.dumps(memory)


def test_a_wait_begins_anew_when_a_job_is_stopped() -> None:
    memory: Memory = {}
    running = gang("a", 4, placement=on("n11", 4), held_s=360.0)
    proposed(view([running], NODES, 360.0), memory)
    stopped = gang("a", 4, held_s=720.0, restarts=0)
    Dally().rank(view([stopped], NODES, 720.0), memory)
    assert memory["waiting_s"] == {"a": 360.0}


def settled(memory: Memory, *jobs: CandidateJob) -> Memory:
    """Let the jobs have been on their GPUs for long."""
    memory["runs"] = {job.job_id: [job.restarts, -1e6] for job in jobs}
    return memory


def test_a_running_job_moves_to_closer_gpus_when_they_are_free() -> None:
    far = gang("far", 2, placement=(("n11", 1), ("n21", 1)))
    now = view([far], NODES)
    assert proposed(now, {"runs": {"far": [0, 0.0]}}).placements["far"] == far.placement
    moved = proposed(now, settled({}, far)).placements["far"]
    assert footprint_of(moved, now.node_by_id).tier is LinkTier.NODE
    still = gang("far", 2, INSENSITIVE, placement=far.placement)
    assert proposed(view([still], NODES), settled({}, still)).placements["far"] == far.placement


def test_a_job_is_stopped_for_one_that_the_network_slows_down_more() -> None:
    old = gang("old", 3, INSENSITIVE, placement=on("n11", 3), held_gpu_s=100.0)
    jobs = [old, BUSY[1], gang("new", 4, TO_RACKS)]
    assert "old" in proposed(view(jobs, NODES), {"runs": {"old": [0, 0.0]}}).placements
    placements = proposed(view(jobs, NODES), settled({}, old, BUSY[1])).placements
    assert placements == {"y": on("n21", 3), "new": on("n11", 4)}


def test_on_a_fast_network_jobs_run_in_order_of_submission() -> None:
    jobs = [gang(f"j{number}", 3, INSENSITIVE, submit_s=number) for number in range(4)]
    assert list(proposed(view(jobs, NODES, 10.0)).placements) == ["j0", "j1"]


def arrivals(rng: random.Random, number: int) -> list[CandidateJob]:
    steps: list[GangSteps | None] = [SENSITIVE, TO_RACKS, INSENSITIVE, None]
    return [
        gang(
            f"j{number:03d}-{index}",
            rng.choice((1, 2, 4, 6, 12)),
            rng.choice(steps),
            submit_s=number * ROUND_S,
            preemptible=rng.random() < 0.8,
        )
        for index in range(rng.randrange(4))
    ]


def after_round(job: CandidateJob, placement: Placement) -> CandidateJob:
    held_s = ROUND_S if placement else 0.0
    is_restart = bool(placement) and placement != job.placement and job.held_s > 0
    return replace(
        job,
        placement=placement,
        held_s=job.held_s + held_s,
        held_gpu_s=job.held_gpu_s + held_s * job.gpus,
        restarts=job.restarts + is_restart,
    )


def test_proposals_keep_the_rules_and_no_job_waits_for_ever() -> None:
    """Jobs come for twenty rounds, and each that runs ends with a chance of 0.3 a round."""
    rng = random.Random(5)
    memory: Memory = {}
    jobs: list[CandidateJob] = []
    for number in range(1, 200):
        jobs += arrivals(rng, number) if number <= 20 else []
        now = view(jobs, racks_of((4, 4), (4, 4)), number * ROUND_S, number)
        placements = proposed(now, memory).placements
        jobs = [
            after_round(job, placements.get(job.job_id, ()))
            for job in now.jobs
            if job.job_id not in placements or rng.random() > 0.3
        ]
    assert jobs == []
    json.dumps(memory)
