"""The parts of a chaos run are chosen by name."""

from __future__ import annotations

import pytest

from benchmarks.chaos import parts_of
from benchmarks.parts.chaos.options import ChaosOptions

PARTS = [
    "stall",
    "recovery",
    "kills",
    "zombies",
    "broker",
    "away",
    "postgres",
    "slow",
    "soak",
    "flood",
    "crowd",
    "lost_tail",
    "disk_kafka",
    "disk_postgres",
    "nodes",
    "cuts",
    "outage",
    "upgrade",
]


def test_all_parts_run_in_their_order() -> None:
    assert parts_of(ChaosOptions()) == PARTS
    assert parts_of(ChaosOptions(only="slow,recovery")) == ["recovery", "slow"]
    assert parts_of(ChaosOptions(only="none")) == []


def test_an_unknown_part_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="only=kils: parts are stall, "):
        parts_of(ChaosOptions(only="broker,kils"))
