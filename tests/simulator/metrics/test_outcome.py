"""Times of jobs that ended, wait or never fit, from the same arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.simulator.metrics.test_measures import outcome


def test_waits_are_to_the_first_start_and_queueing_is_all_time_without_gpus() -> None:
    times = outcome()
    assert times.wait_s.tolist()[:3] == [0.0, 100.0, 400.0]
    assert times.queued_s.tolist()[:3] == [0.0, 130.0, 400.0]
    assert times.jct_s.tolist()[:3] == [50.0, 270.0, 400.0]


def test_the_slowdown_is_bounded_by_ten_seconds_and_by_one() -> None:
    assert outcome().slowdown.tolist()[:3] == [1.0, 270 / 110, 40.0]


def test_jobs_have_ended_when_they_have_an_end() -> None:
    assert (len(outcome()), outcome().ended.tolist()) == (4, [True, True, False, False])


def test_the_window_has_its_begin_and_not_its_end() -> None:
    at_the_end = replace(outcome(), submit_s=np.array([99.9, 100.0, 999.9, 1000.0]))
    assert at_the_end.in_window.tolist() == [False, True, True, False]


def test_gpus_held_in_overlap_do_not_make_queueing_negative() -> None:
    held = replace(outcome(), held_s=np.array([80.0, 140.0, 0.0, 0.0]))
    assert held.queued_s.tolist()[0] == 0.0
