"""The queue of batch jobs, by hand and against RLScheduler's published numbers."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.batch_queue.jobs import BatchJob, log_file, read_jobs, released_starts, sequences
from simulator.batch_queue.picks import f1, fcfs, least, sjf
from simulator.batch_queue.world import bounded_slowdown, mean_bounded_slowdown

PUBLISHED = {"fcfs": (fcfs, 7273.8, 235.8), "sjf": (sjf, 277.4, 73.3), "f1": (f1, 258.4, 75.1)}


def batch(submit_s: float, run_s: float, processors: int) -> BatchJob:
    return BatchJob(submit_s, run_s, run_s, processors)


def test_a_short_run_counts_as_ten_seconds_and_no_slowdown_is_below_one() -> None:
    assert bounded_slowdown(batch(0, 1, 1), 19.0) == 2.0
    assert bounded_slowdown(batch(0, 100, 1), 0.0) == 1.0
    assert bounded_slowdown(batch(0, 100, 1), 100.0) == 2.0


def test_the_chosen_job_waits_until_it_fits_and_none_takes_its_turn() -> None:
    """The second fills the machine and waits 100 s; the third waits behind it, though it fits."""
    jobs = [batch(0, 100, 200), batch(1, 100, 256), batch(2, 10, 1)]
    expected = (1.0 + (99 + 100) / 100 + (198 + 10) / 10) / 3
    assert mean_bounded_slowdown(jobs, least(fcfs)) == pytest.approx(expected)


def test_a_job_that_ends_before_the_chosen_one_can_start_is_backfilled() -> None:
    jobs = [batch(0, 100, 200), batch(1, 100, 256), batch(2, 10, 1), batch(3, 1000, 1)]
    expected = (1.0 + (99 + 100) / 100 + 1.0 + (197 + 1000) / 1000) / 4
    assert mean_bounded_slowdown(jobs, least(fcfs), backfills=True) == pytest.approx(expected)


def test_the_shortest_waiting_job_goes_first() -> None:
    """The second job was chosen while it was alone; of the other two the last is the shortest."""
    jobs = [batch(0, 100, 256), batch(1, 100, 256), batch(2, 100, 256), batch(3, 10, 256)]
    expected = (1.0 + (99 + 100) / 100 + (208 + 100) / 100 + (197 + 10) / 10) / 4
    assert mean_bounded_slowdown(jobs, least(sjf)) == pytest.approx(expected)


@pytest.mark.skipif(log_file() is None, reason="lublin_256.swf is not here")
def test_heuristics_have_the_published_slowdowns() -> None:
    """To the last digit without backfilling; EASY there has another order of equals."""
    file = log_file()
    assert file is not None
    jobs = read_jobs(file)
    starts = released_starts(len(jobs), 10)
    assert starts[:3] == [1981, 2756, 4299]
    for key, alone, backfilled in PUBLISHED.values():
        for backfills, published, near in ((False, alone, 0.06), (True, backfilled, 1.8)):
            ours = np.mean(
                [
                    mean_bounded_slowdown(part, least(key), backfills)
                    for part in sequences(jobs, starts)
                ]
            )
            assert ours == pytest.approx(published, abs=near)
