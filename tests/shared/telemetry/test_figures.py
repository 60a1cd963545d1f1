"""Figures that are computed at a scrape are those of that moment."""

from __future__ import annotations

from shared.telemetry.figures import Figure
from shared.telemetry.metrics import Metrics


def test_figures_are_computed_at_each_scrape() -> None:
    pools: list[str] = []
    metrics = Metrics("executor")
    metrics.watch(lambda: [Figure("berth_nodes_suspected", 3, (pool,)) for pool in pools])
    assert metrics.registry.get_sample_value("berth_nodes_suspected", {"pool": "a"}) is None
    pools.append("a")
    assert metrics.registry.get_sample_value("berth_nodes_suspected", {"pool": "a"}) == 3
    pools.clear()
    assert metrics.registry.get_sample_value("berth_nodes_suspected", {"pool": "a"}) is None
