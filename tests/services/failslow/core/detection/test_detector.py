from __future__ import annotations

import numpy as np
import pytest

from services.failslow.core.detection.detector import Detector
from services.failslow.core.detection.limits import DetectionLimits
from services.failslow.core.detection.runs import Floats
from tests.services.failslow.core.detection.series import changes, changes_of, steady


def slowed(start: int, end: int, size: float, length: int = 600, seed: int = 0) -> Floats:
    seconds = steady(length, seed)
    seconds[start:end] *= 1 + size
    return seconds


def test_a_steady_job_is_never_slow() -> None:
    assert [changes(steady(2000, seed)) for seed in range(5)] == [[]] * 5


@pytest.mark.parametrize("size", [0.08, 0.3, 0.8])
def test_a_slowdown_is_declared_within_its_sixth_iteration_and_its_end_too(size: float) -> None:
    assert changes(slowed(200, 300, size)) == [("slow", 200, 205), ("recovered", 300, 305)]


def test_the_size_is_that_of_the_slowdown() -> None:
    slow, _ = changes_of(slowed(200, 300, 0.3))
    assert slow.slowdown == pytest.approx(1.3, abs=0.02)
    assert slow.confidence > 0.99


def test_the_same_job_in_other_units_is_judged_alike() -> None:
    assert changes(1000 * slowed(200, 300, 0.3)) == changes(slowed(200, 300, 0.3))


def test_a_job_is_slow_twice() -> None:
    seconds = slowed(200, 300, 0.3)
    seconds[400:450] *= 1.2
    assert [kind for kind, _, _ in changes(seconds)] == ["slow", "recovered"] * 2


def test_isolated_spikes_and_bursts_of_a_few_iterations_are_no_slowdown() -> None:
    seconds = steady(1200)
    for start, length in ((100, 1), (180, 2), (260, 3), (350, 4), (500, 5)):
        seconds[start : start + length] *= 1.8
    assert changes(seconds) == []


def test_a_slow_drift_is_no_slowdown() -> None:
    assert changes(steady(1200) * np.linspace(1, 1.15, 1200)) == []


def test_a_batch_that_grows_and_shrinks_is_no_slowdown() -> None:
    tokens = np.full(900, 1024.0)
    tokens[300:600] = 4096.0
    assert changes(steady(900) * tokens, tokens) == []


def test_a_part_of_the_time_that_does_not_depend_on_the_batch_is_no_slowdown() -> None:
    tokens = np.full(900, 4.0)
    tokens[300:600] = 1.0
    assert changes(steady(900) * (0.5 + tokens), tokens) == []


def test_a_slowdown_is_seen_in_batches_of_changing_size() -> None:
    tokens = np.exp(0.2 * np.random.default_rng(1).standard_normal(600))
    seconds = slowed(200, 300, 0.1) * tokens
    assert changes(seconds, tokens) == [("slow", 200, 205), ("recovered", 300, 305)]


def test_a_warm_up_is_no_slowdown_and_does_not_hide_one() -> None:
    seconds = slowed(80, 160, 0.2)
    seconds[:30] *= 1 + 2 * np.exp(-np.arange(30) / 5)
    assert [kind for kind, _, _ in changes(seconds)] == ["slow", "recovered"]


def test_a_ramp_is_declared_while_it_rises() -> None:
    seconds = steady(600)
    seconds[200:240] *= np.linspace(1, 1.6, 40)
    seconds[240:400] *= 1.6
    slow, recovered = changes(seconds)
    assert slow[0] == "slow" and 200 <= slow[2] < 240
    assert recovered == ("recovered", 400, 405)


def test_a_job_that_began_slow_is_declared_once_it_becomes_faster() -> None:
    assert [kind for kind, _, _ in changes(slowed(0, 120, 0.3))] == ["slow"]


def test_pauses_that_repeat_are_learned() -> None:
    seconds = steady(1500)
    for start in range(150, 1500, 150):
        seconds[start : start + 9] *= 1.5
    assert max(at for _, _, at in changes(seconds)) < 450


def test_jobs_beside_each_other_are_judged_as_alone() -> None:
    jobs = [slowed(100 + 10 * row, 260, 0.2, seed=row) for row in range(8)]
    detector = Detector(len(jobs))
    rows = np.arange(len(jobs))
    together = [
        change
        for place in range(600)
        for change in detector.observe(
            rows, np.full(8, place), np.array([job[place] for job in jobs]), np.ones(8)
        )
    ]
    for row, job in enumerate(jobs):
        own = [(one.kind, one.onset, one.at) for one in together if one.row == row]
        assert [kind for kind, _, _ in own] == [kind for kind, _, _ in changes(job)]


def test_the_memory_of_a_job_is_bounded() -> None:
    detector = Detector(1)
    changes(steady(3000), detector=detector)
    limits = DetectionLimits()
    assert detector.memory.values.shape == (1, limits.history)
    assert detector.runs.mean.shape == (1, limits.runs)
