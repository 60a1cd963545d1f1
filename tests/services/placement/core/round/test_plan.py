from __future__ import annotations

from services.placement.core.round.plan import Plan


def test_the_earliest_moment_asked_for_counts() -> None:
    plan = Plan()
    assert plan.again_at is None
    for at in (50, 30, 40):
        plan.repeat_at(at)
    assert plan.again_at == 30
