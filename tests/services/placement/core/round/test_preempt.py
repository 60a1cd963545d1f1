from __future__ import annotations

import pytest

from services.placement.core.round.plan import Eviction
from services.placement.core.round.preempt import preempt_victim
from shared.contracts.attempts import JobPreempted
from tests.services.placement.core.lane import job, lane


@pytest.mark.parametrize(
    ("tier", "spot", "reason"),
    [(0, False, "outranked"), (1, False, "higher_class"), (1, True, "spot_reclaimed")],
)
def test_a_preemption_says_by_what_right(tier: int, spot: bool, reason: str) -> None:
    pool = lane("n1", gpus=8)
    pool.run(job("run", 4))
    pool.submit(job("a", 8))
    victim, by = pool.job("run"), pool.job("a")
    victim.tier = by.tier + tier
    victim.spec = victim.spec.model_copy(update={"spot": spot})
    event = preempt_victim(Eviction(victim, by, 1.5, 2.0, 3.0), pool.now + 7).event
    assert isinstance(event, JobPreempted)
    assert (event.reason, event.by_job_id, event.lost_work_s) == (reason, "a", 1.5)
    assert (event.terms["score"], event.terms["by_score"]) == (2.0, 3.0)
    assert event.terms["ran_ms"] == victim.ran_ms(pool.now + 7)
