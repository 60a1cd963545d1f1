"""Tests of what follows a contended round open every one, also where there is nothing to gain."""

from __future__ import annotations

import pytest

from services.placement.core.solver import contended
from services.placement.core.solver.bound import most_gain


@pytest.fixture(autouse=True)
def every_contended_round_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open rounds whatever `most_gain` is; `test_run_round.py` has the service's own rule."""
    monkeypatch.setattr(contended, "most_gain", lambda instance: max(1, most_gain(instance)))
