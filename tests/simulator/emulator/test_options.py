"""An emulated engine is started with options that make sense."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.emulator.options import EmulatorOptions


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"models": ()}, "at least one"),
        ({"models": ("",)}, "empty"),
        ({"models": ("a", "a")}, "one name"),
        ({"models": ("a",), "adapters": ("a",)}, "one name"),
        ({"models": ("a",), "speed": 0.0}, "above 0"),
        ({"models": ("a",), "speed": float("nan")}, "above 0"),
        ({"models": ("a",), "queue_limit": 0}, "below 1"),
    ],
)
def test_options_that_no_engine_has_are_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        EmulatorOptions(**options)
