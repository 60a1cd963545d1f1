from __future__ import annotations

import numpy as np
import pytest

from shared.performance.goodput import StepTimes
from shared.performance.step_fit import LEAST, TIMES_WITHIN, MeasuredStep, _Errors, fit

TRUE = StepTimes(0.05, 0.002, 0.15, 0.004, 0.03, 0.001, 1.5)


def measured(nodes: int, gpus: int, examples: int) -> MeasuredStep:
    arrays = [np.array([float(value)]) for value in (nodes, gpus, examples)]
    step_s = float(TRUE.step_s(*arrays)[0])
    return MeasuredStep(
        nodes, gpus, examples, step_s, step_s - float(TRUE.computing_s(arrays[2])[0])
    )


SHAPES = [(1, 1), (1, 2), (1, 4), (2, 4), (2, 8), (4, 16), (8, 32)]


def test_steps_of_the_model_are_predicted() -> None:
    steps = fit([measured(*shape, examples) for shape in SHAPES for examples in (16, 64, 256)])
    nodes, gpus = np.array(SHAPES, np.float64).T
    for examples in (32.0, 128.0):
        ours = steps.step_s(nodes, gpus, np.full(len(SHAPES), examples))
        true = TRUE.step_s(nodes, gpus, np.full(len(SHAPES), examples))
        assert ours.tolist() == pytest.approx(true.tolist(), rel=0.05)


def test_links_that_were_not_seen_are_taken_to_be_fast() -> None:
    alone = fit([measured(1, 1, 16), measured(1, 1, 64)])
    assert alone.within_s == LEAST
    assert alone.across_s == pytest.approx(LEAST * TIMES_WITHIN)
    within = fit([measured(1, 1, 16), measured(1, 4, 64)])
    assert within.across_s == pytest.approx(max(LEAST, within.within_s * TIMES_WITHIN))


def test_one_batch_size_halves_its_time() -> None:
    steps = fit([measured(1, 1, 64)])
    computing_s = float(TRUE.computing_s(np.array([64.0]))[0])
    assert steps.compute_s == pytest.approx(computing_s / 2)
    assert steps.compute_s_per_example * 64 == pytest.approx(computing_s / 2, rel=0.01)


def test_the_gradient_is_that_of_the_error() -> None:
    errors = _Errors([measured(*shape, 64) for shape in SHAPES] + [measured(1, 1, 16)])
    values = np.array([0.07, 0.003, 0.1, 0.002, 0.05, 0.003, 2.0])
    _, slope = errors.error(values)
    for number in range(len(values)):
        step = np.zeros(len(values))
        step[number] = values[number] * 1e-6
        rise = errors.error(values + step)[0] - errors.error(values - step)[0]
        assert slope[number] == pytest.approx(rise / (2 * step[number]), rel=1e-3, abs=1e-6)
