"""Keys that clients choose, by the million: what a tenant leaves is bounded, and ends with time."""

from __future__ import annotations

import pickle

import pytest

from services.throttle.core.disciplines.budgets import Budget
from services.throttle.core.disciplines.meters import HalfLife, Memory, SlidingWindow
from services.throttle.core.disciplines.rates import InteractionRate
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.interactions import Interactions

MOST_BYTES = 2_000_000
"""Of a checkpoint, of what one tenant can leave in a budget, the rates and the interactions."""


class Kept:
    """The users, applications and interactions of one tenant that an endpoint knows."""

    def __init__(self, memory: Memory) -> None:
        self.budget = Budget(1e4, holder="user", memory=memory)
        self.rate = InteractionRate(60, 60)
        self.interactions = Interactions()

    def serve(self, number: int, at: int) -> None:
        """Serve one request of a user, application and interaction that never come again."""
        request = ServedRequest(
            f"r{number}", "acme", 9, 9, at, application=f"a{number}", user=f"u{number}"
        )
        self.budget.note_queued(request)
        self.rate.note_queued(request)
        self.interactions.add_call("acme", f"i{number}", 0, at)
        self.budget.note_started(request, at)
        self.budget.note_finished(request)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Return the number of users, applications and interactions."""
        users, calls = self.budget.usages.get("acme"), self.interactions.tenants.get("acme")
        assert users is not None
        assert calls is not None
        return len(users.values), len(self.rate.applications.times.values), len(calls.values)

    @property
    def checkpoint_bytes(self) -> int:
        return len(pickle.dumps((self.budget, self.rate, self.interactions)))


@pytest.mark.parametrize("users", [25_000, pytest.param(1_000_000, marks=pytest.mark.parts)])
def test_what_a_flood_of_new_users_leaves_is_bounded(users: int) -> None:
    kept = Kept(HalfLife())
    for number in range(users):
        kept.serve(number, number // 10)
    assert kept.sizes == (10_000, 10_000, 1_000)
    assert kept.checkpoint_bytes < MOST_BYTES


@pytest.mark.parametrize("memory", [SlidingWindow(60_000), HalfLife(10_000)])
def test_users_that_came_once_are_forgotten_with_what_they_used(memory: Memory) -> None:
    kept = Kept(memory)
    for number in range(5_000):
        kept.serve(number, 1_000 * number)
    users, applications, interactions = kept.sizes
    assert users < 400
    assert applications <= 61
    assert interactions <= 602
    assert kept.checkpoint_bytes < MOST_BYTES / 20


def test_one_that_has_something_used_or_held_is_not_forgotten_by_age() -> None:
    budget = Budget(100, holder="user", memory=HalfLife())
    old = ServedRequest("r", "acme", 1, 9, 0, user="old")
    budget.note_queued(old)
    budget.note_started(old, 0)
    budget.note_finished(old)
    for number in range(1_000):
        other = ServedRequest(f"r{number}", "acme", 1, 9, 10**12, user=f"u{number}")
        budget.note_queued(other)
        budget.note_withdrawn(other)
    assert budget.standing(old, 10**12)[0] == 99
    held = ServedRequest("held", "acme", 1, 9, 0, user="held")
    window = Budget(100, holder="user", memory=SlidingWindow(1_000))
    window.note_queued(held)
    window.note_queued(ServedRequest("r", "acme", 1, 9, 10**12, user="u"))
    assert window.standing(held, 10**12)[0] == 90
