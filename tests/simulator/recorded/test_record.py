"""The record as an outcome, rows and errors of a replay: by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from simulator.engine.candidate import TrialCandidate
from simulator.metrics.outcome import ScheduleOutcome
from simulator.recorded.document import document_of
from simulator.recorded.fidelity import fidelity_of
from simulator.recorded.reading import ShadowRecord
from simulator.recorded.record import recorded_outcome
from simulator.recorded.rounds import play_in_rounds
from simulator.recorded.rows import Played, mean_interval, rows_of, units_of
from simulator.recorded.slice import RecordedSlice, part_of_past
from simulator.recorded.what_if import WhatIf, play
from tests.simulator.recorded.past import three_jobs

SHORTEST = TrialCandidate("sjf", {"base_policy": "sjf", "runtime": "oracle"})


def part(to_s: float = 2000) -> RecordedSlice:
    return part_of_past(three_jobs().read(0, 0, to_s))


@pytest.fixture(scope="module")
def done() -> WhatIf:
    return play(part(), [SHORTEST], ["fcfs"])


def test_the_record_has_waits_ends_and_use() -> None:
    outcome = recorded_outcome(part())
    assert outcome.wait_s.tolist() == [0, 901, 1301]
    assert outcome.jct_s.tolist() == [1000, 1401, 1401]
    assert outcome.held_s.tolist() == [1000, 500, 100]
    assert outcome.busy_gpu_s == 8 * 1600
    assert outcome.starts.tolist() == [1, 1, 1]


def test_the_record_of_a_time_within_a_schedule_has_its_gpus_alone() -> None:
    assert recorded_outcome(part(500)).busy_gpu_s == 8 * 499


def test_the_replay_of_the_recorded_settings_has_the_recorded_waits(done: WhatIf) -> None:
    errors = done.fidelity.first_wait
    assert errors.recorded_mean_s == pytest.approx((0 + 901 + 1301) / 3)
    assert errors.mean_absolute_error_s < 1
    assert errors.close_share == 1


def test_rows_are_the_record_the_replay_and_each_policy(done: WhatIf) -> None:
    recorded, present, shortest, rounds = done.rows
    assert [row.name for row in done.rows] == [
        "recorded",
        "present settings",
        "sjf",
        "fcfs, in rounds",
    ]
    assert present.mean_wait_s == pytest.approx(2202 / 3, abs=1)
    assert shortest.mean_wait_s == pytest.approx((0 + 1001 + 801) / 3, abs=1)
    assert shortest.wait_change is not None
    assert shortest.wait_change.gain == pytest.approx(1802 / 2202 - 1, abs=0.01)
    assert recorded.use == pytest.approx(1600 / 2000)
    assert shortest.use == pytest.approx(1600 / 2000, abs=0.01)
    assert present.wait_change is None and rounds.use is None
    assert [(one.tenant, one.jobs) for one in shortest.tenants] == [
        ("t-a", 1),
        ("t-b", 1),
        ("t-c", 1),
    ]
    assert shortest.tenants[2].mean_wait_s == pytest.approx(801, abs=1)


def test_rounds_start_jobs_at_their_beginning() -> None:
    """Rounds of 360 s count from the first job: `a` ends at 1000 and `b` starts at 1080."""
    outcome = play_in_rounds(part(), "fcfs")
    assert outcome.start_s.tolist() == [361, 1441, 2161]
    assert outcome.wait_s.tolist() == [360, 1341, 1961]
    assert outcome.held_s.tolist() == pytest.approx([1000, 500, 100], abs=0.1)


def test_errors_are_replayed_less_recorded_times() -> None:
    truth, replay = outcome_of([0, 100, 200]), outcome_of([0, 130, 290])
    errors = fidelity_of(truth, replay, np.ones(3, np.bool_)).first_wait
    assert (errors.mean_error_s, errors.mean_absolute_error_s) == (40, 40)
    assert errors.close_share == pytest.approx(2 / 3)
    assert errors.change.gain == pytest.approx(420 / 300 - 1)


def test_stops_are_counted_by_tenant() -> None:
    base, ours = outcome_of([0, 0, 0]), outcome_of([0, 0, 0], starts=[3, 1, 2])
    (row,) = rows_of([Played("p", "simulated", ours)], base, np.ones(3, np.bool_), ["x", "y"])
    assert row.stops == 3
    assert [(one.tenant, one.stops) for one in row.tenants] == [("x", 3), ("y", 0)]
    assert row.wait_change is not None and row.wait_change.interval is None


def test_a_short_time_has_units_of_a_part_of_an_hour() -> None:
    outcome = outcome_of([0, 0, 0])
    assert units_of(outcome, np.ones(3, np.bool_)).tolist() == [0, 2, 4]


def test_the_interval_of_a_mean_holds_it() -> None:
    values = np.random.default_rng(3).exponential(100.0, 400)
    interval = mean_interval(values, np.arange(400) // 10)
    assert interval is not None and interval[0] < values.mean() < interval[1]
    assert interval[1] - interval[0] < 100


def test_a_document_has_no_number_that_json_lacks(done: WhatIf) -> None:
    shadows = [ShadowRecord("las", 4, 2.0)]
    document = document_of(part(), done, shadows, {"x": "y"})
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["shadows"] == [{"policy": "las", "orders": 4, "agreement": 0.5, "refused": 0}]
    assert document["left_out"] == {"x": "y"}
    assert math.isclose(document["mean_gpus"], 8)


def outcome_of(waits_s: list[float], starts: list[int] | None = None) -> ScheduleOutcome:
    """Return three jobs of 10 s at 0, 100 and 200 s in a time of 1200 s; the first and last are
    of one tenant.
    """
    submit_s = np.array([0.0, 100.0, 200.0])
    start_s = submit_s + waits_s
    return ScheduleOutcome(
        submit_s=submit_s,
        start_s=start_s,
        end_s=start_s + 10,
        duration_s=np.full(3, 10.0),
        gpus=np.ones(3),
        tenant=np.array([0, 1, 0]),
        starts=np.array(starts or [1, 1, 1]),
        held_s=np.full(3, 10.0),
        lost_s=np.zeros(3),
        fits=np.ones(3, np.bool_),
        capacity_gpus=4.0,
        window_s=(0.0, 1200.0),
        held_by_hour=np.array([30.0]),
        horizon_s=2000.0,
    )


def test_waits_of_few_units_have_no_interval() -> None:
    """Three hours with waits, among a day without, are no sample of the next day."""
    values = np.zeros(24)
    values[[3, 9, 20]] = 100.0
    assert mean_interval(values, np.arange(24)) is None
    values[[5, 6]] = 50.0
    assert mean_interval(values, np.arange(24)) is not None
