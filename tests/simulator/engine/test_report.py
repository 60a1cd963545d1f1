"""The source of run times and the JSON form of a report."""

from __future__ import annotations

import pytest

from simulator.engine.options import SimulationOptions
from simulator.engine.report import runtime_source_of, to_json
from simulator.metrics.measures import measure
from tests.simulator.metrics.test_measures import outcome


@pytest.mark.parametrize(
    ("options", "source"),
    [
        (SimulationOptions("fcfs"), "blind"),
        (SimulationOptions("las", runtime="oracle"), "blind"),
        (SimulationOptions("sjf"), "history"),
        (SimulationOptions("srsf", runtime="oracle"), "oracle"),
        (SimulationOptions("fcfs", learned="berth"), "history"),
        (SimulationOptions("fcfs", queue_mode="easy", walltime="oracle"), "oracle"),
        (SimulationOptions("fcfs", queue_mode="skip", walltime="oracle"), "blind"),
        (SimulationOptions("fcfs", queue_mode="easy"), "history"),
        (SimulationOptions("fcfs", queue_mode="easy", easy_runtime="user"), "user"),
    ],
)
def test_a_report_names_the_source_of_run_times(options: SimulationOptions, source: str) -> None:
    assert runtime_source_of(options) == source


def test_nan_is_null_in_json() -> None:
    report = to_json(measure(outcome()))
    assert report["fragmentation"] is None
    assert report["window"]["jobs"] == 3
