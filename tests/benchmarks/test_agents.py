"""The benchmark of agents runs as a whole on a small stack; no figure decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.agents import AgentsOptions, run, settings
from benchmarks.parts.agents.figures import AIMS, find_figure
from infra.broker import kafka


@pytest.mark.stack
@pytest.mark.parts
async def test_every_figure_is_measured(tmp_path: Path) -> None:
    options = AgentsOptions(
        agents=6,
        clients=2,
        idle_s=1,
        seconds=6,
        jobs_per_s=3,
        jobs_s=2,
        outage_share=0,
        out=str(tmp_path),
    )
    result = cast("dict[str, Any]", await run(options, lambda line: None))
    measured = [aim.figure for aim in AIMS if not aim.figure.startswith("outage.")]
    assert all(isinstance(find_figure(result, figure), int | float) for figure in measured)
    assert result["outage"] == {"skipped": "outage_share is 0"}
    assert result["submitted"] == result["ordered"] == 6
    assert result["real_submitted"] == result["started"] == 4
    stages = ("order", "world", "step", "barrier", "program")
    assert all(result["stages"][f"{stage}_p50_ms"] is not None for stage in stages)
    assert result["heartbeats"] >= 6
    assert result["cpu_per_agent_ms_per_s"] > 0 < result["reconnect_at_once_s"]
    assert result["executor_rss_mib"] < result["control_rss_mib"]
    assert not [fault for fault in result["faults"] if "fence" in fault or fault.endswith("403")]
    assert result["agent"]["step_processes"] >= 1
    assert json.loads((tmp_path / "agents.json").read_text()) == result
    assert "| `reconnect_s` |" in (tmp_path / "agents.md").read_text()


@pytest.mark.stack
@pytest.mark.kafka
@pytest.mark.parts
@pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there")
async def test_no_agent_loses_its_lease_in_an_outage_that_is_far_shorter(tmp_path: Path) -> None:
    earlier = settings(AgentsOptions()) | {"join_s": 5.4}
    (tmp_path / "agents.json").write_text(json.dumps(earlier))
    options = AgentsOptions(
        agents=20, clients=2, stop_after_s=600, outage_share=0.01, only="outage", out=str(tmp_path)
    )
    result = cast("dict[str, Any]", await run(options, lambda line: None))
    outage = result["outage"]
    assert (outage["agents"], outage["outage_s"], outage["stop_after_s"]) == (20, 6, 600)
    assert (outage["back"], outage["fenced"]) == (20, 0), outage
    assert outage["reconnect_s"] >= 0 and outage["longest_unrenewed_s"] >= 6
    assert (result["agents"], result["join_s"]) == (1000, 5.4), "other figures are kept"


async def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="only=outages: must be one of"):
        await run(AgentsOptions(only="outages"), lambda line: None)
