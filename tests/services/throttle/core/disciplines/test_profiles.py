from __future__ import annotations

from services.throttle.core.disciplines.profiles import (
    PROFILED_TENANTS,
    CallProfile,
    CallProfiles,
    TokenPrices,
)
from tests.services.throttle.core.disciplines.serving import a_request


def test_system_prompts_count_twice() -> None:
    request = a_request(prompt=100)
    request.system_tokens = 40
    assert TokenPrices().of_prompt(request) == 60 + 2 * 40


def test_one_tenant_cannot_move_a_profile_far() -> None:
    profile = CallProfile()
    for tenant in "abcde":
        profile.learn(tenant, 100)
    for _ in range(1000):
        profile.learn("poisoner", 100_000)
    assert profile.usual_cost == 100


def test_a_profile_follows_a_change_of_the_application() -> None:
    profile = CallProfile()
    for cost in [100] * 50 + [300] * 15:
        for tenant in "abc":
            profile.learn(tenant, cost)
    assert profile.usual_cost == 300


def test_a_profile_does_not_grow_with_tenants() -> None:
    profile = CallProfile()
    for number in range(PROFILED_TENANTS + 50):
        profile.learn(f"t{number}", 100 if number < PROFILED_TENANTS else 900)
    assert len(profile.costs) == len(profile.medians) == PROFILED_TENANTS
    assert profile.usual_cost == 100


def test_stages_of_an_application_have_profiles_of_their_own() -> None:
    profiles = CallProfiles()
    request = a_request(prompt=10)
    assert profiles.usual_cost(request) is None
    request.made_tokens = 5
    profiles.learn(request)
    assert profiles.usual_cost(request) == 15
    request.stage = 1
    assert profiles.usual_cost(request) is None
