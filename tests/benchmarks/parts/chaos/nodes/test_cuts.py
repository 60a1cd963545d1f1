"""Nodes on hosts of their own, cut off by the network: a few rounds on the embedded broker."""

from __future__ import annotations

import pytest

from benchmarks.parts.chaos.nodes.cut_rounds import CutOff, CutRound, plan_cuts
from benchmarks.parts.chaos.nodes.cuts import cuts, describe_cuts
from benchmarks.parts.chaos.nodes.ticks import GpuUse
from benchmarks.parts.chaos.options import ChaosOptions
from infra.drills import hosts

SAFE = (
    "double_runs",
    "ticks_after_release",
    "outlived_lease",
    "lost_jobs",
    "left_behind",
    "not_recovered",
)
"""Not among them: the workers that a cut below the lease stops, as a busy machine renews late."""
ROUNDS, SEED = 5, 11


def cut_off(share: float, *, is_fenced: bool) -> CutOff:
    planned = CutRound(7, "to_host", share, 0.0)
    return CutOff(planned, "n1", 5_000, 15_000, is_fenced, recovery_s=1.0, load_1m=2.0)


def test_an_incarnation_that_outlives_its_lease_is_a_finding() -> None:
    done = [
        cut_off(0.5, is_fenced=False),
        cut_off(1.1, is_fenced=True),
        cut_off(2.0, is_fenced=False),
    ]
    figures = describe_cuts(done, [GpuUse("n1", 0, "a", 1, 0, 1_000, 14_000)])
    assert (figures["rounds"], figures["beyond_the_lease"], figures["outlived_lease"]) == (3, 2, 1)
    assert figures["outlived"] == ["round 7: to_host for 2 x stop_after_s"]
    assert figures["fenced"] == {"to_host 1.1": 1}
    assert figures["least_margin_s"] == 1.0
    assert describe_cuts([], [])["least_margin_s"] is None


def test_the_rounds_of_the_next_test_are_of_all_kinds() -> None:
    planned = plan_cuts(SEED, ROUNDS)
    assert {one.cut for one in planned} == {"from_host", "to_host", "both"}
    assert {one.is_beyond_lease for one in planned} == {False, True}


@pytest.mark.parts
@pytest.mark.stack
async def test_after_cuts_of_the_network_no_gpu_had_two_holders_and_no_job_is_lost() -> None:
    if reason := hosts.missing():
        pytest.skip(reason)
    lines: list[str] = []
    options = ChaosOptions(broker="embedded", rounds=ROUNDS, seed=SEED, agents=2, busy=1)
    figures = await cuts(options, lines.append)
    counts = {name: figures[name] for name in SAFE}
    assert counts == dict.fromkeys(SAFE, 0), [*lines, str(figures)]
    assert (figures["verify"], figures["rounds"]) == ("ok", ROUNDS) and figures["gpu_uses"]
