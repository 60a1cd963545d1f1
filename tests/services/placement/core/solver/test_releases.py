"""Releases are expected by estimates at speed 1 and the speeds of the GPUs."""

from __future__ import annotations

from typing import Any

from services.placement.core.round.view import view_of
from services.placement.core.solver.releases import RELEASES, end_by_speed, next_releases
from tests.services.placement.core.lane import Lane, job

DENSE = {"v100": 1.0, "k80": 0.1}


def test_ends_are_by_the_speed_of_the_gpus_and_an_overrun_estimate_doubles_once() -> None:
    made = Lane()
    made.pool()
    made.node("slow", 1, gpu_type="k80")
    made.run(job("runs", gpu_speeds=DENSE, walltime_s=10.0))
    began = made.job("runs").started_at
    assert end_by_speed(view_of(made.state, made.now), made.job("runs")) == began + 100_000
    late = view_of(made.state, began + 100_000)
    assert end_by_speed(late, made.job("runs")) == began + 200_000
    assert end_by_speed(view_of(made.state, began + 200_000), made.job("runs")) is None


def test_declared_speeds_beyond_all_bounds_leave_times_within_bounds() -> None:
    tiny = 5e-324
    made = Lane()
    made.pool()
    made.node("slow", 2, gpu_type="k80")
    speeds: dict[str, Any] = {
        "gpu_speeds": {"k80": tiny},
        "spread_speeds": {"rack": tiny, "spine": tiny},
    }
    made.run(job("runs", walltime_s=100.0, **speeds), job("years", walltime_s=1e9, **speeds))
    began = made.job("runs").started_at
    view = view_of(made.state, made.now)
    assert end_by_speed(view, made.job("runs")) == began + 100_000_000
    assert end_by_speed(view, made.job("years")) is None


def test_the_next_releases_come_first() -> None:
    made = Lane()
    made.pool()
    made.node("n", 64)
    made.run(*(job(f"j{n}", walltime_s=100.0 - n) for n in range(RELEASES + 3)))
    ends = [release.at for release in next_releases(view_of(made.state, made.now))]
    assert len(ends) == RELEASES and ends == sorted(ends)
