from __future__ import annotations

import numpy as np

from simulator.kernel.adam import Adam


def test_a_step_has_the_length_of_the_rate_whatever_the_size_of_the_gradient() -> None:
    zero = np.zeros(3)
    adam = Adam(0.5, zero, zero.copy())
    for _ in range(3):
        step = adam.move(np.array([1e-3, -4.0, 0.0]))
        assert np.allclose(step, [0.5, -0.5, 0.0], rtol=1e-4)


def test_a_gradient_that_turns_is_averaged() -> None:
    adam = Adam(1.0, np.zeros(1), np.zeros(1))
    adam.move(np.array([1.0]))
    assert 0.0 < abs(adam.move(np.array([-1.0]))[0]) < 0.1
