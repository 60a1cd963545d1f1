"""After its start a service searches its heap less often, and not what the start has made."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from shared.process.heap import settle_heap


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_what_exists_is_left_out_and_cycles_are_freed_all_the_same() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    settle_heap()
    assert gc.get_freeze_count() > frozen
    assert gc.get_threshold()[0] > before[0]
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    assert gc.collect() > 0
