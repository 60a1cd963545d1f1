"""A report of NVRx and a dump of the flight recorder are iterations of a rank."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from berth_agent.core.tool_reports import row_of
from tests.services.failslow.core.readers.test_flight_recorder import a_training

NVRX = {
    "gpu_relative_perf_scores": {"0": 1.0, "1": 0.5, "2": float("nan")},
    "section_relative_perf_scores": {"fwd": {"0": 0.9, "1": 0.1}},
}


def encoded(document: Any) -> bytes:
    return json.dumps(document).encode()


def test_a_score_is_own_work_beside_that_of_the_fastest_rank() -> None:
    fast, slow = row_of(encoded(NVRX), 0, 3), row_of(encoded(NVRX), 1, 3)
    assert (fast.step, fast.iteration_s, fast.own_s, fast.wait_s) == (3, 2.0, 1.0, 1.0)
    assert (slow.iteration_s, slow.own_s, slow.wait_s) == (2.0, 2.0, 0.0)


def test_the_worst_section_counts_without_scores_of_gpus() -> None:
    sections = {"section_relative_perf_scores": {"fwd": {"0": 1, "1": 0.8}, "bwd": {"1": 0.5}}}
    assert row_of(encoded(sections), 1, 0).own_s == 2.0


def test_time_between_collectives_is_own_work() -> None:
    rows = [row_of(encoded(dump), 0, 0) for dump in a_training([30, 75])]
    assert [row.own_s for row in rows] == pytest.approx([0.03, 0.075])
    assert [row.iteration_s for row in rows] == pytest.approx([0.08, 0.08])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        encoded(NVRX).replace(b'"0"', b'"zero"'),
        encoded({"entries": {}}),
        encoded({"entries": [{}, {}]}),
        encoded({"entries": [{"time_created_ns": "x", "time_discovered_completed_ns": 1}] * 2}),
        encoded({"gpu_relative_perf_scores": {"1": 1}}),
        encoded({"gpu_relative_perf_scores": [1]}),
        encoded({"gpu_relative_perf_scores": {"0": "1e999"}, "x": 1}).replace(b'"1e999"', b"[]"),
        encoded(
            {
                "entries": [
                    {"time_created_ns": n, "time_discovered_completed_ns": n + 1}
                    for n in (0, 10**20)
                ]
            }
        ),
        encoded({"gpu_relative_perf_scores": {"0": float("inf")}}),
        encoded({"gpu_relative_perf_scores": {"0": 1e308}}),
        pickle.dumps(a_training([30, 75])[0]),
    ],
)
def test_what_is_not_of_a_tool_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        row_of(data, 0, 0)
