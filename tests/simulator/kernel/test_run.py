"""The rules of a kernel run and the pool settings that they are named after."""

from __future__ import annotations

from dataclasses import fields

import pytest

from shared.contracts.pools import PoolSettings, default_of
from simulator.kernel.run import Rules

OWN = {"preemption"}
"""Rules that have the name of a setting and another type."""
SHARED = sorted({field.name for field in fields(Rules)} & PoolSettings.model_fields.keys() - OWN)


def test_rules_have_the_names_of_pool_settings() -> None:
    assert {"queue_mode", "min_residency_s", "preempt_margin", "large_gang_share"} < set(SHARED)


@pytest.mark.parametrize("setting", SHARED)
def test_a_rule_has_the_default_of_its_setting(setting: str) -> None:
    assert getattr(Rules(), setting) == default_of(setting)


def test_what_the_kernel_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="scheduler: 'gavel': .*use simulator.engine"):
        Rules(scheduler="gavel")
    with pytest.raises(ValueError, match="packing: 'fragments': .*use simulator.engine"):
        Rules(packing="fragments")
