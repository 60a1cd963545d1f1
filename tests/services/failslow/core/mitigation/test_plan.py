"""A plan names one level for all faults of a gang, and who applies it."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.durations import ObservedFault, Survival
from services.failslow.core.mitigation.levels import BY_NAME, LEVELS
from services.failslow.core.mitigation.plan import GangLoss, OpenFault, Planner
from services.failslow.core.mitigation.redistribute import Division

LONG = Survival.of([ObservedFault(7200)] * 50)
NEW = Survival.of([])
GPU = OpenFault("f1", "n1", "compute", 0.5)
LINK = OpenFault("f2", "n2", "communication", 0.3)
ODD = OpenFault("f3", "n3", "unknown", 0.4)
EIGHT = Division.of([1.5, *[1.0] * 7], [16] * 8)


def test_a_slow_gpu_loses_micro_batches() -> None:
    plan = Planner().plan([GPU], GangLoss(20, 6), NEW, EIGHT)
    assert plan is not None
    assert (plan.level, plan.actor) == ("redistribute", "framework")
    assert plan.remaining == pytest.approx(1 / 16)
    assert plan.accumulated_loss_s == 6
    assert plan.microbatches == (11, 17, 17, 17, 17, 17, 16, 16)
    assert plan.evidence[0] == "1 open faults, the worst 50% slower (compute)"


def test_the_reason_decides_which_levels_can_help() -> None:
    planner = Planner()
    names = {f.reason: [o.level for o in planner.options([f])] for f in (GPU, LINK, ODD)}
    assert names == {
        "compute": ["redistribute", "migrate", "restart"],
        "communication": ["adapt_schedule", "rearrange", "migrate", "restart"],
        "unknown": ["migrate", "restart"],
    }


def test_the_lesser_of_two_faults_limits_the_greater_ones_gain() -> None:
    options = {o.level: o for o in Planner().options([GPU, LINK], EIGHT)}
    assert options["redistribute"].remaining == 0.3
    assert options["rearrange"].remaining == 0.5
    assert options["migrate"].remaining == 0


def test_one_migration_leaves_all_slow_nodes() -> None:
    only = Planner(levels=(BY_NAME["migrate"],))
    plan = only.plan([GPU, LINK, ODD], GangLoss(60, 20), LONG)
    assert plan is not None
    assert plan.node_ids == ("n1", "n2", "n3")


def test_a_gang_without_loss_gets_no_plan() -> None:
    assert Planner().plan([], GangLoss(), NEW) is None
    assert Planner().plan([GPU], GangLoss(2, 1), NEW) is None


def test_redistribution_without_known_groups_takes_the_learned_effect() -> None:
    options = Planner().options([GPU])
    assert options[0].remaining == pytest.approx(0.5 * LEVELS[0].leaves)
