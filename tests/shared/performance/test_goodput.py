from __future__ import annotations

import math

import numpy as np
import pytest

from shared.performance.goodput import BatchLimits, GoodputModel, GradientNoise, StepTimes

STEPS = StepTimes(0.1, 0.01, 0.2, 0.002, 0.05, 0.001, 2.0)
LIMITS = BatchLimits(initial=32, largest=1024, least_of_gpu=8, most_of_gpu=64)
MODEL = GoodputModel(STEPS, GradientNoise(1.0, 4.0), LIMITS)


def test_a_step_is_the_norm_of_computing_and_synchronising() -> None:
    step = STEPS.step_s(np.array([1.0, 2.0]), np.array([4.0, 4.0]), np.array([10.0, 10.0]))
    within, across = 0.05 + 0.001 * 2, 0.2 + 0.002 * 2
    assert step.tolist() == pytest.approx([math.hypot(0.2, within), math.hypot(0.2, across)])


def test_efficiency_is_that_of_the_noise_scale() -> None:
    scale = 32 * 4.0 / 1.0
    batch = np.array([32.0, 64.0, 1024.0])
    assert MODEL.efficiency(batch).tolist() == pytest.approx(
        ((scale + 32) / (scale + batch)).tolist()
    )


def test_the_best_batch_is_no_worse_than_any_other() -> None:
    best = MODEL.best([1, 1, 2], [1, 4, 8])
    for number, (nodes, gpus) in enumerate(((1, 1), (1, 4), (2, 8))):
        for examples in range(LIMITS.least_of_gpu, LIMITS.most_of_gpu + 1):
            batch = gpus * examples
            if not LIMITS.initial <= batch <= LIMITS.largest or (gpus == 1 and batch > 32):
                continue
            arrays = [np.array([float(value)]) for value in (nodes, gpus, examples, 0)]
            other = MODEL.throughput(*arrays) * MODEL.efficiency(np.array([float(batch)]))
            assert best.goodput[number] >= other[0] * 0.99


def test_one_gpu_accumulates_beyond_the_initial_batch() -> None:
    noisy = GoodputModel(STEPS, GradientNoise(1.0, 1000.0), LIMITS)
    best = noisy.best([1], [1])
    assert best.accumulated[0] >= 1
    assert best.examples_of_gpu[0] * (best.accumulated[0] + 1) > LIMITS.initial
