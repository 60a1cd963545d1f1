from __future__ import annotations

from services.throttle.core.interactions import IDLE_MS, TENANT_INTERACTIONS, Interactions


def test_calls_are_counted_per_tenant_until_the_interaction_is_idle() -> None:
    interactions = Interactions()
    interactions.add_call("a", "i", 0, 1000)
    interactions.add_call("a", "i", 1, 2000)
    assert interactions.stage("a", "i", 2000 + IDLE_MS) == 2
    assert interactions.stage("a", "i", 2001 + IDLE_MS) == 0
    assert interactions.stage("b", "i", 2000) == 0
    assert interactions.stage("a", "other", 2000) == 0


def test_a_tenant_that_invents_ids_makes_only_its_own_interactions_forgotten() -> None:
    interactions = Interactions()
    interactions.add_call("good", "i", 0, 0)
    for number in range(TENANT_INTERACTIONS + 1):
        interactions.add_call("flood", f"i{number}", 0, 0)
    assert interactions.stage("good", "i", 1) == 1
    assert interactions.stage("flood", "i0", 1) == 0
    assert interactions.stage("flood", "i1", 1) == 1
