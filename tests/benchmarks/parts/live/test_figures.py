"""The kernel's figures of a day, with and without hand-overs that take time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.parts.live.day import choose_day
from benchmarks.parts.live.figures import (
    RunFigures,
    deciders_figures,
    deciders_with_handovers,
    kernel_figures,
    range_of,
    wait_by_cause,
    within,
)
from benchmarks.parts.policies.costs import StopCosts

RUN = RunFigures(10, 3, 2, 0.01, 600.0, 5000.0)


@pytest.mark.slow
def test_hand_overs_lengthen_the_mean_wait() -> None:
    day = choose_day("synthetic", 0, 2 * 3600.0, 0.5, 300.0, StopCosts(1800.0, 60.0))
    plain, [none] = deciders_figures(day), deciders_with_handovers(day, 0.0, draws=1)
    assert none == plain, "without a delay the draws change nothing"
    delayed = deciders_with_handovers(day, 120.0, draws=2)
    # Not by 120 s for each job: a later start changes what is decided after it.
    assert min(run.mean_wait_s for run in delayed) > plain.mean_wait_s
    assert all(run.jobs_ended == len(day.jobs) for run in delayed)
    assert plain.stops > 0 and max(run.lost_share for run in delayed) < 2 * plain.lost_share


@pytest.mark.slow
def test_the_kernel_ends_the_same_jobs_within_the_goals() -> None:
    day = choose_day("synthetic", 0, 2 * 3600.0, 0.5, 300.0, StopCosts(1800.0, 60.0))
    kernel, deciders = kernel_figures(day), deciders_figures(day)
    assert kernel.jobs_ended == deciders.jobs_ended == len(day.jobs)
    assert kernel.most_starts <= 20 and kernel.lost_share <= 0.02


def test_the_difference_of_waits_is_the_sum_of_its_causes() -> None:
    runs = [replace(RUN, mean_wait_s=wait) for wait in (600.0, 700.0, 850.0, 950.0, 1000.0)]
    causes = wait_by_cause(runs[0], runs[1], runs[2:4], runs[4])
    assert causes == {"rounds": 100.0, "handovers": 200.0, "rest": 100.0}


def test_a_figure_is_within_runs_up_to_both_ends() -> None:
    runs = [RUN, replace(RUN, stops=7, mean_wait_s=900.0)]
    assert range_of(runs)["stops"] == [3, 7]
    assert within(replace(RUN, stops=7), runs) == dict.fromkeys(RUN.plain(), True)
    outside = within(replace(RUN, stops=8, mean_wait_s=599.9), runs)
    assert [name for name, lies in outside.items() if not lies] == ["stops", "mean_wait_s"]
