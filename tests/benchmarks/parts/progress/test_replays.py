"""Parts of a trace, with and without reports."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.progress.replays import SETTINGS, TracePart, parts_of, play, scenario_of
from tests.simulator.kernel.workloads import job


def test_parts_lie_evenly_over_the_trace() -> None:
    parts = list(parts_of("synthetic:helios", 400, 3))
    assert [part.name for part in parts] == [f"synthetic:helios#{n}" for n in (1, 2, 3)]
    assert {len(part.jobs) for part in parts} == {400}
    firsts = [part.jobs[0].submit_s for part in parts]
    assert firsts == sorted(firsts) and len(set(firsts)) == 3


def busy_part() -> TracePart:
    """Jobs of half an hour to many hours, of two users, on few nodes."""
    draw = np.random.default_rng(5)
    submits = np.cumsum(draw.exponential(1200.0, 240)).tolist()
    hours = np.exp(draw.normal(0.5, 1.2, 240)).tolist()
    jobs = [
        job(n, (submit, 3600.0 * length, 1, int(draw.choice([1, 4, 8]))), "red", f"u{n % 2}")
        for n, (submit, length) in enumerate(zip(submits, hours, strict=True))
    ]
    return TracePart("busy#1", jobs)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_reports_change_the_waits_of_the_same_jobs(setting: str) -> None:
    scenario = scenario_of(busy_part(), setting)
    assert scenario.pool.use_progress
    without, again, reported = (play(scenario, share, 0) for share in (0.0, 0.0, 1.0))
    assert (without.submit_s == reported.submit_s).all()
    assert np.array_equal(without.delay_s, again.delay_s)
    assert not np.array_equal(without.delay_s, reported.delay_s)
    assert 0.0 <= without.lost_share < 0.5


@pytest.mark.slow
def test_seeds_draw_other_errors() -> None:
    scenario = scenario_of(busy_part(), "gittins")
    delays = [play(scenario, 1.0, seed).delay_s.tolist() for seed in range(4)]
    assert any(delay_s != delays[0] for delay_s in delays)
