from __future__ import annotations

from typing import ClassVar

import pytest

from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.time_share_rounds import Shares, TimeShareRounds
from shared.schedulers.view import ClusterView
from tests.shared.schedulers.views import job, nodes_of, rates, view

ROUNDS, RECOMPUTE_S = 100, 1000.0


class Fixed(TimeShareRounds):
    """Shares that a test gives."""

    name: ClassVar[str] = "fixed"
    source: ClassVar[str] = "a test"
    recompute_s: ClassVar[float] = RECOMPUTE_S

    def __init__(self, shares: Shares) -> None:
        self.fixed = shares

    def shares(self, view: ClusterView, memory: Memory) -> Shares:
        return self.fixed


def test_a_hundred_rounds_have_the_shares() -> None:
    shares: Shares = {
        "a": {"v": 0.7, "p": 0.3},
        "b": {"v": 0.2, "p": 0.5},
        "c": {"v": 0.1, "p": 0.2},
    }
    jobs = [job(name) for name in shares]
    memory: Memory = {}
    had = {name: {"v": 0, "p": 0} for name in shares}
    for number in range(ROUNDS):
        now = view(jobs, nodes_of(v=1, p=1), 1 + number * 360.0, number)
        for name, placement in propose(Fixed(shares), now, memory).placements.items():
            gpu_type = now.type_of(placement)
            assert gpu_type is not None
            had[name][gpu_type] += 1
    for name, own in shares.items():
        for gpu_type, share in own.items():
            assert had[name][gpu_type] / ROUNDS == pytest.approx(share, abs=0.06)


def test_a_job_that_comes_waits_for_the_next_shares() -> None:
    shares: Shares = {"a": {"v": 1.0}}
    scheduler, memory, nodes = Fixed(shares), Memory(), nodes_of(v=2)
    assert set(propose(scheduler, view([job("a")], nodes, 10.0), memory).placements) == {"a"}
    jobs = [job("a"), job("b")]
    shares["b"] = {}
    assert memory["shares"] is shares
    memory["shares"] = {"a": {"v": 1.0}}
    early = propose(scheduler, view(jobs, nodes, RECOMPUTE_S), memory)
    assert set(early.placements) == {"a"}
    late = propose(scheduler, view(jobs, nodes, RECOMPUTE_S + 10.0), memory)
    assert set(late.placements) == {"a", "b"}, "free GPUs go to jobs without a share"


def test_a_type_on_which_a_job_does_not_run_is_not_given_to_it() -> None:
    jobs = [job("a", estimates=rates({"v": 0.0, "p": 1.0}))]
    now = view(jobs, nodes_of(v=1, p=1), 1.0)
    placements = propose(Fixed({"a": {"v": 1.0}}), now, {}).placements
    assert now.type_of(placements["a"]) == "p"
