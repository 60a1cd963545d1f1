"""The jobs that tenants are entitled to: how many GPUs, whose, and in which order."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.priority.core.history.distributions import Floats
from services.priority.core.policies.keys import LIFT
from services.priority.core.queue.queue_view import QueueView
from services.priority.core.ranking.entitlement import entitled_jobs
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.ranking import NodeGpus, QueueRanked
from tests.harness.decider import AT, fold
from tests.services.priority.core.lane import PRIORITY, pool
from tests.services.priority.core.queues import change, entry, queue, view_of

JOB = st.tuples(
    st.integers(0, 3),
    st.floats(-20.0, 20.0),
    st.integers(1, 16),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.booleans(),
)


def view(jobs: list[tuple[int, float, int, float, bool]]) -> tuple[QueueView, Floats]:
    jobs = sorted(jobs, key=lambda job: job[4])
    tenant, scores, gpus, tier, running = (
        map(np.array, zip(*jobs, strict=True)) if jobs else [np.zeros(0)] * 5
    )
    columns = view_of(
        tenant=tenant.astype(np.intp),
        gpus=gpus.astype(np.float64),
        tier=tier,
        running=running.astype(np.bool_),
        submit_s=np.arange(len(jobs), dtype=np.float64),
        capacity_gpus=64.0,
    )
    return columns, scores


@given(st.lists(JOB, max_size=40), st.floats(0.05, 1.0))
def test_each_tenant_has_its_best_jobs_up_to_its_part(
    jobs: list[tuple[int, float, int, float, bool]], floor: float
) -> None:
    columns, scores = view(jobs)
    weights = np.array([1.0, 2.0, 1.0, 4.0])
    settings = pool(tenant_floor=floor, preempt_margin=0.7)
    chosen = set(entitled_jobs(columns, scores, weights, settings).tolist())
    counted = [place for place in range(len(jobs)) if columns.tier[place] < 4.0]
    tenants = {int(columns.tenant[place]) for place in counted}
    if len(tenants) < 2:
        assert not chosen, "a tenant alone needs no part"
        return
    assert chosen <= set(counted), "spot jobs have none"
    for tenant in tenants:
        own = [place for place in counted if columns.tenant[place] == tenant]
        own.sort(key=lambda p: (columns.tier[p], -(scores[p] + 0.7 * columns.running[p]), p))
        mine = [place for place in own if place in chosen]
        part = floor * 64.0 * weights[tenant] / weights[[*tenants]].sum()
        held = columns.gpus[mine].sum()
        assert mine and mine == own[: len(mine)], "the best ones"
        assert held <= part or len(mine) == 1
        if len(mine) < len(own):
            assert held + columns.gpus[own[len(mine)]] > part, "as many as there may be"


def test_a_tenant_of_long_jobs_is_ranked_before_another_s_many_short_ones() -> None:
    """Of 10 GPUs at 0.6 each of two tenants has 3, or 1.5 and 4.5 with weights of 1 and 3."""
    entries = [entry(f"s{n}", "red", gpus=1, at=AT + n) for n in range(9)]
    entries += [entry(f"w{n}", "blue", gpus=2, at=AT + 20 + n) for n in range(4)]
    state = queue(*entries, base_policy="gittins", preemption="ranked", tenant_floor=0.6)
    change(state, nodes=(NodeGpus(node_id="n", gpus=10),))

    def first() -> list[str]:
        ranked = [d.event for d in PRIORITY.decide(state, [], AT + 5000)]
        (event,) = [e for e in ranked if isinstance(e, QueueRanked)]
        return [one.job_id for one in event.ranked if one.score > LIFT / 2]

    assert first() == ["s0", "s1", "s2", "w0"]
    fold(PRIORITY, state, [TenantNoted(tenant="blue", weight=3)])
    assert first() == ["s0", "w0", "w1"]


def test_the_lift_exceeds_every_difference_of_two_scores() -> None:
    worst = math.log(1e18 * 1e6) - math.log(1e-9)
    assert worst < LIFT
