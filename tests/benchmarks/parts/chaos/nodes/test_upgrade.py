"""An agent is upgraded under running jobs, which all end as if nothing had happened."""

from __future__ import annotations

import pytest

from benchmarks.parts.chaos import node_figures
from benchmarks.parts.chaos.nodes.upgrade import upgrade
from benchmarks.parts.chaos.options import ChaosOptions


@pytest.mark.parts
@pytest.mark.stack
async def test_no_worker_notices_that_its_agent_was_upgraded() -> None:
    options = ChaosOptions(broker="embedded", upgrade_jobs=8, upgrades=2)
    figures = await upgrade(options, lambda line: None)
    zeros = (*node_figures.ZEROS, "nodes_fenced", "incomplete_outputs")
    assert {name: figures[name] for name in zeros} == dict.fromkeys(zeros, 0), figures
    assert (figures["attempts"], figures["verify"]) == (8, "ok")
