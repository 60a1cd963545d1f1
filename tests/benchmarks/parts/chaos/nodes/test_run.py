"""Faults of nodes in a whole stack leave nothing to find: a few rounds on the embedded broker."""

from __future__ import annotations

import pytest

from benchmarks.parts.chaos import node_figures
from benchmarks.parts.chaos.nodes.run import nodes
from benchmarks.parts.chaos.options import ChaosOptions

pytestmark = [pytest.mark.parts, pytest.mark.stack]


async def test_after_some_rounds_nothing_is_doubled_lost_stopped_or_left_behind() -> None:
    lines: list[str] = []
    options = ChaosOptions(broker="embedded", rounds=6, agents=2, stop_after_s=15.0)
    figures = await nodes(options, lines.append)
    assert {name: figures[name] for name in node_figures.ZEROS} == dict.fromkeys(
        node_figures.ZEROS, 0
    ), lines + [str(figures)]
    assert figures["verify"] == "ok" and figures["gpu_uses"]
