from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.parts.league.entrants import BASE, OURS, Entrant
from benchmarks.parts.league.standings import MeanChange, Played, change, standings
from simulator.metrics.outcome import ScheduleOutcome

HOURS = 200


def outcome(factor: float, noise: float = 0.0, seed: int = 3) -> ScheduleOutcome:
    """Return an outcome of one job an hour, of an hour of work, that waits `factor` hours."""
    submit_s = np.arange(HOURS, dtype=np.float64) * 3600.0
    drawn = np.random.default_rng(seed).standard_normal(HOURS)
    wait_s = 3600.0 * np.maximum(factor * (1.0 + noise * drawn), 0.0)
    ones = np.ones(HOURS)
    return ScheduleOutcome(
        submit_s=submit_s,
        start_s=submit_s + wait_s,
        end_s=submit_s + wait_s + 3600.0,
        duration_s=3600.0 * ones,
        gpus=ones,
        tenant=np.zeros(HOURS, np.int64),
        starts=np.ones(HOURS, np.int64),
        held_s=3600.0 * ones,
        lost_s=np.zeros(HOURS),
        fits=np.ones(HOURS, np.bool_),
        capacity_gpus=8.0,
        window_s=(0.0, HOURS * 3600.0),
        held_by_hour=np.zeros(0),
        horizon_s=1e9,
    )


def played(name: str, own: ScheduleOutcome, runtime_source: str = "blind") -> Played:
    return Played(Entrant(name, runtime_source), [own], 0.0)


def test_the_winner_can_be_deployed_and_its_equals_are_not_worse_beyond_doubt() -> None:
    table = standings(
        [
            played(OURS, outcome(1.0, 0.2)),
            played(BASE, outcome(2.0, 0.2)),
            played("twin", outcome(1.001, 0.2)),
            played("same", outcome(1.0, 0.2)),
            played("bound", outcome(0.5), "oracle"),
            played("noisy", outcome(1.002, 0.2, seed=4)),
        ]
    )
    assert [row["name"] for row in table["rows"]][0] == "bound"
    assert table["winner"] == OURS
    assert set(table["equals"]) == {"same", "noisy"}
    base = next(row for row in table["rows"] if row["name"] == BASE)
    assert base["vs_ours"]["verdict"] == "worse"
    assert base["vs_base"]["change"] == 0.0


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.2, -0.1, "better"),
        (0.1, 0.2, "worse"),
        (-0.1, 0.1, "no difference"),
        (float("nan"), float("nan"), "no difference"),
    ],
)
def test_an_interval_with_zero_or_unknown_decides_nothing(
    low: float, high: float, verdict: str
) -> None:
    assert MeanChange(0.0, low, high).verdict == verdict


def test_equal_outcomes_have_no_difference() -> None:
    jct_s = outcome(1.0, 0.2).jct_s
    assert change(jct_s, jct_s, np.arange(HOURS)) == MeanChange(0.0, 0.0, 0.0)


def test_jobs_without_an_end_are_counted() -> None:
    stuck = outcome(1.0)
    stuck = replace(stuck, end_s=np.where(np.arange(HOURS) < 3, np.nan, stuck.end_s))
    table = standings([played(OURS, outcome(1.0)), played(BASE, outcome(2.0)), played("s", stuck)])
    assert next(row for row in table["rows"] if row["name"] == "s")["without_end"] == 3
    assert table["equals"] == []
