"""The texts that the tests of missing rules replace: those tests run in `make test-parts` alone."""

from __future__ import annotations

from pathlib import Path

from tests.fencing.node_sabotage import SABOTAGES

ROOT = Path(__file__).parents[2]


def test_each_rule_is_once_in_its_file() -> None:
    counts = {name: (ROOT / s.path).read_text().count(s.rule) for name, s in SABOTAGES.items()}
    assert {name: count for name, count in counts.items() if count != 1} == {}
