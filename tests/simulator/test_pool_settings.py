"""Defaults that the simulators read from the contract."""

from __future__ import annotations

import pytest

from shared.contracts.access import PoolSettings
from simulator.kernel.run import Rules
from simulator.pool_settings import default_of


@pytest.mark.parametrize(
    "setting", ["min_residency_s", "preempt_margin", "large_gang_share", "defragment_after_s"]
)
def test_kernel_rules_have_the_defaults_of_the_contract(setting: str) -> None:
    assert getattr(Rules(), setting) == PoolSettings.model_fields[setting].default


def test_an_unknown_setting_is_an_error() -> None:
    with pytest.raises(KeyError):
        default_of("colour")
