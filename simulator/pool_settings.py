"""Defaults of pool settings in both simulators, read from the contract that declares them."""

from __future__ import annotations

from typing import Any

from shared.contracts.access import PoolSettings


def default_of(setting: str) -> Any:
    """Return the default of a setting of `PoolSettings`. Raises KeyError for an unknown one."""
    return PoolSettings.model_fields[setting].default
