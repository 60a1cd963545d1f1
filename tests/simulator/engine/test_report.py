"""The source of run times and the JSON form of a report."""

from __future__ import annotations

import pytest

from simulator.engine.options import SimulationOptions
from simulator.engine.report import runtime_knowledge, to_json
from simulator.metrics.measures import measure
from tests.simulator.metrics.test_measures import outcome


@pytest.mark.parametrize(
    ("options", "knowledge"),
    [
        (SimulationOptions("fcfs"), "blind"),
        (SimulationOptions("las", runtime="oracle"), "blind"),
        (SimulationOptions("sjf"), "history"),
        (SimulationOptions("srsf", runtime="oracle"), "oracle"),
        (SimulationOptions("fcfs", learned="berth"), "history"),
        (SimulationOptions("fcfs", queue_mode="easy", walltime="oracle"), "oracle"),
        (SimulationOptions("fcfs", queue_mode="skip", walltime="oracle"), "blind"),
    ],
)
def test_a_report_names_the_source_of_run_times(options: SimulationOptions, knowledge: str) -> None:
    assert runtime_knowledge(options) == knowledge


def test_nan_is_null_in_json() -> None:
    report = to_json(measure(outcome()))
    assert report["fragmentation"] is None
    assert report["window"]["jobs"] == 3
