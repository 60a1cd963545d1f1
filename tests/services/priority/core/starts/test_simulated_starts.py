"""The queue simulated forward: when jobs start as GPUs fall free."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history.distributions import BINS, VALUES, Floats
from services.priority.core.starts.simulated_starts import (
    CLASSES_MOST,
    QUEUE_MOST,
    REPORTED_SPREAD,
    SCENARIOS,
    Load,
    QueueSimulation,
    RunningJob,
    draw_rests_s,
    running_jobs,
    simulate_starts,
    simulated_most,
)
from services.priority.core.starts.start_reservation import NEVER_S
from shared.contracts.pools import QueueMode


def load(*jobs: tuple[float, int, float]) -> Load:
    """Return jobs of (GPUs, bin of their run time, seconds run)."""
    p = np.zeros((len(jobs), BINS))
    for row, (_, at, _) in enumerate(jobs):
        p[row, at] = 1.0
    gpus = np.array([job[0] for job in jobs], np.float64)
    return Load(gpus, p, np.array([job[2] for job in jobs], np.float64))


def one(
    ends: list[tuple[float, float]],
    gpus: list[float],
    run_s: list[float],
    mode: QueueMode,
    estimate_s: list[float] | None = None,
) -> list[float]:
    running = [RunningJob(end_s, held, end_s) for end_s, held in ends]
    return QueueSimulation(0.0, running, gpus, run_s, estimate_s or run_s, mode).run()


def test_a_job_starts_when_enough_gpus_are_free() -> None:
    assert one([(10.0, 4.0), (20.0, 4.0)], [8.0, 4.0], [5.0, 1.0], "strict") == [20.0, 25.0]


def test_a_job_that_does_not_fit_lets_others_pass_or_blocks_them() -> None:
    assert one([(10.0, 4.0), (20.0, 4.0)], [8.0, 4.0], [5.0, 1.0], "skip") == [20.0, 10.0]
    assert one([(10.0, 4.0), (20.0, 4.0)], [8.0, 4.0], [5.0, 30.0], "skip") == [40.0, 10.0]


def test_a_reservation_lets_those_pass_that_end_before_it_or_leave_it_room() -> None:
    ends = [(10.0, 4.0), (20.0, 4.0)]
    assert one(ends, [8.0, 4.0], [5.0, 10.0], "easy") == [20.0, 10.0], "ends just in time"
    assert one(ends, [8.0, 4.0], [5.0, 11.0], "easy") == [20.0, 25.0], "would delay the first"
    spare = one([(10.0, 4.0), (20.0, 4.0)], [6.0, 2.0, 2.0], [5.0, 99.0, 99.0], "easy")
    assert spare == [20.0, 10.0, 25.0], "two GPUs are spare beside the first, once"


def test_a_reservation_that_never_comes_does_not_block_others() -> None:
    assert one([(10.0, 4.0)], [9.0, 4.0], [1.0, 99.0], "easy") == [NEVER_S, 10.0]


def test_a_job_larger_than_the_pool_never_starts() -> None:
    assert one([(10.0, 4.0)], [9.0], [1.0], "skip") == [NEVER_S]


def test_the_simulation_ends_with_its_target() -> None:
    jobs = ([1.0, 1.0], [5.0, 5.0], [5.0, 5.0])
    assert QueueSimulation(1.0, [], *jobs, "skip").run(target=0) == [0.0, NEVER_S]


def test_easy_reserves_and_backfills_by_estimates_and_not_by_what_comes_true() -> None:
    ends = [(10.0, 4.0), (20.0, 4.0)]
    long_in_fact = one(ends, [8.0, 4.0], [5.0, 99.0], "easy", [5.0, 10.0])
    assert long_in_fact == [109.0, 10.0], "it was taken to end in time"
    assert one(ends, [8.0, 4.0], [5.0, 1.0], "easy", [5.0, 99.0]) == [20.0, 25.0]


def test_an_outlived_estimate_of_a_running_job_is_doubled() -> None:
    holding = load((1.0, 20, 50.0), (1.0, 20, 150.0), (1.0, 20, 250.0), (1.0, 20, 5.0))
    estimate_s = np.array([100.0, 100.0, 100.0, np.inf])
    jobs = running_jobs(holding._replace(estimate_s=estimate_s), np.ones(4))
    assert [job.expected_s for job in jobs] == [50.0, 50.0, 150.0, NEVER_S]
    assert [job.expected_s for job in running_jobs(holding, np.ones(4))] == [1.0] * 4


def slow(ends: list[tuple[float, float]], gpus: list[float], run_s: list[float]) -> list[float]:
    """Return the delays of a queue that skips, looking at every job after every end."""
    delays, waiting, held, free = [NEVER_S] * len(gpus), [*range(len(gpus))], sorted(ends), 0.0
    while held and waiting:
        now = held[0][0]
        free += sum(g for end, g in held if end <= now)
        held = [job for job in held if job[0] > now]
        for job in list(waiting):
            if gpus[job] <= free:
                free -= gpus[job]
                delays[job] = now
                waiting.remove(job)
                held = sorted([*held, (now + run_s[job], gpus[job])])
    return delays


def test_lines_give_the_starts_of_a_scan_of_the_whole_queue() -> None:
    draw = np.random.default_rng(3)
    for _ in range(20):
        gpus = draw.choice([1.0, 2.0, 4.0, 8.0], 40).tolist()
        run_s = np.round(draw.lognormal(4.0, 1.0, 40), 3).tolist()
        ends = [(float(end), 4.0) for end in np.round(draw.uniform(1.0, 99.0, 4), 3)]
        assert one(ends, gpus, run_s, "skip") == slow(ends, gpus, run_s)


def test_jobs_behind_those_that_are_simulated_start_at_their_pace() -> None:
    count = 2 * QUEUE_MOST
    waiting = load(*[(1.0, 10, 0.0)] * count)
    delays_s = simulate_starts(0.0, load(*[(1.0, 10, 0.0)] * 64), waiting, "skip")
    assert delays_s.shape == (count, SCENARIOS)
    middle, last = np.median(delays_s[QUEUE_MOST - 1]), np.median(delays_s[-1])
    assert last == pytest.approx(2.0 * middle, rel=0.1)


def test_levels_are_drawn_from_what_is_left_of_a_run() -> None:
    rests_s = draw_rests_s(load((1.0, 20, 0.0), (1.0, 20, 1100.0), (1.0, 20, 9000.0)), 0)
    assert rests_s.shape == (3, SCENARIOS)
    low_s, high_s = VALUES[20] * 2**-0.25, VALUES[20] * 2**0.25
    assert (rests_s[0] >= low_s * 0.999).all() and (rests_s[0] <= high_s * 1.001).all()
    assert (rests_s[1] <= high_s - 1100.0 + 1e-6).all() and (rests_s[1] > 0).all()
    assert (rests_s[2] == 9000.0).all(), "it has outlived all that history knows"


def test_every_waiting_job_has_a_delay_in_every_scenario() -> None:
    delays_s = simulate_starts(
        1.0, load((3.0, 10, 0.0)), load((1.0, 8, 0.0), (4.0, 8, 0.0)), "skip"
    )
    assert delays_s.shape == (2, SCENARIOS)
    assert (delays_s[0] == 0.0).all()
    assert delays_s[1].min() == pytest.approx(VALUES[10], rel=0.2)


def spread(values: Floats) -> float:
    return float(values.max() - values.min())


def test_the_same_jobs_have_the_same_scenarios() -> None:
    holding, waiting = load((3.0, 10, 0.0)), load((4.0, 8, 0.0))
    first, second = (simulate_starts(1.0, holding, waiting, "skip") for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert spread(first[0]) > 0.0


@pytest.mark.parametrize("mode", ["skip", "easy"])
def test_jobs_of_ever_other_sizes_are_simulated_up_to_a_number_of_classes(mode: QueueMode) -> None:
    alike = Load(np.ones(5000), np.ones((5000, BINS)), np.zeros(5000))
    assert simulated_most(alike, mode) == QUEUE_MOST
    sizes = 1.0 + np.arange(5000) / 1000
    assert simulated_most(alike._replace(gpus=sizes), mode) == CLASSES_MOST
    estimates = np.exp2(np.arange(5000) % 1000)
    by_estimate = alike._replace(estimate_s=estimates)
    assert simulated_most(by_estimate, mode) == QUEUE_MOST
    delays = simulate_starts(0.0, load((8.0, 3, 0.0)), alike._replace(gpus=sizes), mode)
    assert delays.shape == (5000, SCENARIOS)


def test_a_reported_rest_stands_for_what_history_knows() -> None:
    """Bin 40 is far later than the 900 s that the first job reports; the second reports nothing."""
    jobs = load((4.0, 40, 100.0), (4.0, 40, 100.0))
    rests_s = draw_rests_s(jobs._replace(reported_s=np.array([900.0, np.nan])), 0)
    assert np.all(np.abs(rests_s[0] / 900.0 - 1.0) <= REPORTED_SPREAD)
    assert len(set(rests_s[0].tolist())) == SCENARIOS
    assert np.array_equal(rests_s[1], draw_rests_s(jobs, 0)[1])


@pytest.mark.parametrize(("reported_s", "expected_s"), [(20.0, 20.0), (1e6, 300.0)])
def test_easy_expects_a_reported_end_as_placement_does(
    reported_s: float, expected_s: float
) -> None:
    """It was to run for 350 s, and has run for 300 s: it lengthens its rest to as long again."""
    jobs = load((4.0, 40, 300.0))._replace(estimate_s=np.array([350.0]))
    reporting = jobs._replace(reported_s=np.array([reported_s]))
    [silent] = running_jobs(jobs, np.array([900.0]))
    [job] = running_jobs(reporting, np.array([900.0]))
    assert (silent.expected_s, job.expected_s) == (50.0, expected_s)
