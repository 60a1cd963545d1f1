"""Policies that a past has data for, and the reasons of those left out."""

from __future__ import annotations

from typing import get_args

import pytest

from shared.contracts.nodes import NodeCordoned
from shared.contracts.pools import LOG_SCORE_MARGIN, BasePolicy
from simulator.engine.candidate import PRESENT
from simulator.recorded.league import (
    AS_FCFS,
    ONE_TENANT,
    TRUE_TIMES,
    USERS_TIMES,
    League,
    league_of,
    policy_settings,
    unmet_need,
)
from simulator.recorded.slice import part_of_past
from tests.simulator.recorded.past import PoolLedger, three_jobs


def league(**settings: object) -> League:
    return league_of(part_of_past(three_jobs(**settings).read(0, 0, 2000)))


def names(of: League) -> list[str]:
    return [one.name for one in of.candidates]


def test_the_present_settings_are_a_candidate_once_and_the_first() -> None:
    tried = names(league(base_policy="wfp3"))
    assert tried[:3] == [PRESENT, "gittins, preemption by rank", "learned, preemption by rank"]
    assert "wfp3" not in tried and {"fcfs", "learned", "srsf, preemption by rank"} <= set(tried)


def test_every_base_policy_is_tried_or_left_out_for_a_reason() -> None:
    own = league(base_policy="wfp3")
    assert set(get_args(BasePolicy)) - {"wfp3"} <= set(names(own)) | own.left_out.keys()
    assert own.left_out["priority_class"] == AS_FCFS


def test_fair_share_needs_two_tenants() -> None:
    ledger = PoolLedger()
    ledger.join(0)
    ledger.enqueue(1, "a", 10)
    ledger.start(1, "a")
    ledger.end(11, "a")
    assert league_of(part_of_past(ledger.read(0, 0, 20))).left_out["fair_share"] == ONE_TENANT
    assert "fair_share" in names(league())


def test_a_pool_of_users_run_times_has_no_policy_of_histories() -> None:
    own = league(runtime="user")
    assert own.left_out["gittins"] == own.left_out["qssf"] == USERS_TIMES
    assert "las, preemption by rank" in names(own)


def test_true_run_times_are_for_jobs_that_declare_them() -> None:
    ledger = PoolLedger(runtime="oracle")
    ledger.join(0)
    ledger.enqueue(1, "a", 10, simulated=None)
    ledger.start(1, "a")
    ledger.end(11, "a")
    own = league_of(part_of_past(ledger.read(0, 0, 20)))
    assert own.left_out["sjf"] == own.left_out["learned"] == TRUE_TIMES
    assert "sjf" in names(league(runtime="oracle"))


def test_a_scheduler_runs_if_the_ledger_has_what_it_needs() -> None:
    part = part_of_past(three_jobs().read(0, 0, 2000))
    assert unmet_need(part, "gavel") == unmet_need(part, "tiresias") == ""
    assert "needs work_left" in unmet_need(part, "afs")
    assert "needs goodput" in unmet_need(part, "pollux")
    assert "decides numbers of GPUs" in unmet_need(part, "sia")


def test_a_scheduler_needs_the_speed_on_each_type_of_the_pool() -> None:
    ledger = three_jobs()
    ledger.join(0, "n2", "v100")
    assert "needs rates" in unmet_need(part_of_past(ledger.read(0, 0, 2000)), "gavel")
    ledger = PoolLedger()
    ledger.join(0)
    ledger.join(0, "n2", "v100")
    ledger.enqueue(1, "a", 10, gpu_speeds={"a100": 1.0, "v100": 0.5})
    ledger.start(1, "a")
    ledger.end(11, "a")
    assert unmet_need(part_of_past(ledger.read(0, 0, 20)), "gavel") == ""


def test_rounds_have_neither_parts_of_gpus_nor_nodes_that_leave() -> None:
    ledger = three_jobs()
    ledger.write(300, NodeCordoned(node_id="n1"))
    assert "cordoned" in unmet_need(part_of_past(ledger.read(0, 0, 2000)), "fcfs")
    ledger = three_jobs()
    ledger.enqueue(20, "part", 5, gang={"workers": 1, "gpus_per_worker": 0.5})
    ledger.start(1601, "part")
    ledger.end(1610, "part")
    assert "parts of one" in unmet_need(part_of_past(ledger.read(0, 0, 2000)), "fcfs")


@pytest.mark.parametrize(
    ("policy", "changes", "margin"),
    [
        ("gittins", {"preemption": "ranked"}, LOG_SCORE_MARGIN),
        ("learned:berth", {"preemption": "ranked"}, LOG_SCORE_MARGIN),
        ("las", {"preemption": "ranked"}, 0.0),
        ("las", {"preemption": "ranked", "preempt_margin": 3.0}, 3.0),
    ],
)
def test_the_margin_of_stops_is_that_of_the_scores(
    policy: str, changes: dict[str, object], margin: float
) -> None:
    pool = part_of_past(three_jobs().read(0, 0, 2000)).scenario.pool
    assert policy_settings(pool, policy, changes)["preempt_margin"] == margin
    assert "preempt_margin" not in policy_settings(pool, policy, {})
