"""The decider of placement under random schedules, whole and with each of its rules removed."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import pytest

from tests.fencing.sabotage import READER_RULES, SABOTAGES
from tests.fencing.schedules import Violation, World

SECONDS = 100
QUICK, LONG = 60, 1500
SEEDS_MOST = 4000
FAULTS: dict[str, tuple[str, ...]] = {
    "R10": ("die_or_boot",),
    "R11": ("boot_clone",),
    "R12": ("jump_clock",),
    "R13": ("lose_tail",),
    "R14": ("restart_reader",),
    "R15": ("declare_lost",),
    "R16": ("die_or_boot",),
    "R20": ("stick",),
    "R21": ("change_terms",),
    "R21b": ("change_terms",),
    "R21c": ("change_terms",),
    "R22": ("jump_clock", "declare_lost"),
    "R23": ("offer_old_silence",),
}
"""Faults that show the missing rule soonest."""


def test_no_schedule_lets_two_workers_hold_a_gpu() -> None:
    facts: Counter[str] = Counter()
    for seed in range(QUICK):
        world = World(seed)
        world.run(SECONDS)
        facts.update(type(fact.event).__name__ for fact in world.lane.facts)
    common = {"JobPlaced", "NodeLost", "NodeHeldBack", "NodeHeard", "NodeTermsApplied"}
    assert all(facts[name] > 10 for name in common), facts


@pytest.mark.parts
def test_no_schedule_of_many_lets_two_workers_hold_a_gpu() -> None:
    for seed in range(QUICK, LONG):
        World(seed).run(SECONDS)


@pytest.mark.parts
@pytest.mark.parametrize("rule", [*SABOTAGES, *READER_RULES])
def test_without_a_rule_some_schedule_does(rule: str) -> None:
    reader = {READER_RULES[rule]: False} if rule in READER_RULES else {}
    with SABOTAGES.get(rule, nullcontext)(), pytest.raises(Violation):
        for seed in range(SEEDS_MOST):
            World(seed, FAULTS[rule.split()[0]], **reader).run(SECONDS)
