"""Four real DDP workers, one slowed: suspected, migrated automatically, and sooner at the end."""

from __future__ import annotations

from typing import Any, cast

import pytest

from benchmarks.parts.slow_worker.training import missing_torch, moments
from benchmarks.slow_worker import SlowWorkerOptions, run


@pytest.mark.parts
@pytest.mark.stack
async def test_a_training_with_a_slowed_worker_ends_sooner_where_it_is_migrated() -> None:
    """The comparison is within one run and by a large factor; no figure of its own decides."""
    if reason := missing_torch():
        pytest.skip(reason)
    options = SlowWorkerOptions(steps=100, factor=10.0, only_slowed=True)
    result = cast("dict[str, Any]", await run(options, lambda line: None))
    alone, moved = result["unmitigated"], result["mitigated"]
    assert (alone["attempts"], moved["attempts"] > 1) == (1, True), result
    assert moved["slow_node"] not in moved["nodes_at_end"], result
    names = list(moved["s_from_start"])
    suspected = next(name for name in names if name.startswith(f"suspected {moved['slow_node']}"))
    order = [suspected, "migrate planned", "migrate applied", "job stops to migrate"]
    assert [names.index(name) for name in order] == sorted(map(names.index, order)), result
    assert {"mitigate", "migrate", "fault"} <= set(moved["spans"]), result
    assert moved["wall_s"] < alone["wall_s"], result


def test_moments_are_seconds_since_the_start() -> None:
    timeline: list[dict[str, object]] = [
        {"type": "job.started.v1", "at": 1000, "data": {}},
        {"type": "fault.suspected.v1", "at": 3500, "data": {"node_id": "n1", "cause": "compute"}},
        {"type": "mitigation.applied.v1", "at": 4000, "data": {"level": "migrate"}},
        {"type": "job.migrated.v1", "at": 4100, "data": {}},
        {"type": "job.started.v1", "at": 5000, "data": {}},
    ]
    assert dict(moments(timeline, 1000)) == {
        "suspected n1 (compute)": 2.5,
        "migrate applied": 3.0,
        "job stops to migrate": 3.1,
        "job runs again": 4.0,
    }
