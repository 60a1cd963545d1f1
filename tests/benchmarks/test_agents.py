"""The benchmark of agents runs as a whole on a small stack; no figure decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.agents import AgentsOptions, Placements, run
from benchmarks.parts.agents.figures import AIMS, find_figure


@pytest.mark.stack
@pytest.mark.parts
async def test_every_figure_is_measured(tmp_path: Path) -> None:
    options = AgentsOptions(
        agents=6, clients=2, idle_s=1, seconds=6, jobs_per_s=3, jobs_s=2, out=str(tmp_path)
    )
    result = cast("dict[str, Any]", await run(options, lambda line: None))
    assert all(isinstance(find_figure(result, aim.figure), int | float) for aim in AIMS)
    assert result["submitted"] == result["started"] == 6
    assert result["heartbeats"] >= 6
    assert result["cpu_per_agent_ms_per_s"] > 0 < result["reconnect_at_once_s"]
    assert result["executor_rss_mib"] < result["control_rss_mib"]
    assert not [fault for fault in result["faults"] if "fence" in fault or fault.endswith("403")]
    assert result["agent"]["step_processes"] >= 1
    assert json.loads((tmp_path / "agents.json").read_text()) == result
    assert "| `reconnect_s` |" in (tmp_path / "agents.md").read_text()


def test_a_placement_is_named_by_the_allocation_of_rank_0_and_ends_with_the_start() -> None:
    placements = Placements()
    placements.note("job.placed.v1", "j", "2/7/1", 5_000)
    placements.note("job.started.v1", "other", "2/8/0", 5_500)
    placements.note("job.started.v1", "j", "2/8/1", 6_000)
    assert placements.placed_ms == {"2/7/1/0": 5_000} and placements.ready_ms == [1_000]
