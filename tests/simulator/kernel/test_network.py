"""A learned policy as a vector and as ONNX."""

from __future__ import annotations

import numpy as np

from simulator.kernel.network import network, theta_of
from simulator.kernel.weights import join, size, split, untrained


def test_a_network_gives_its_weights_back() -> None:
    theta = np.random.default_rng(1).normal(size=size(8)).astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(theta_of(network(theta)), theta, rtol=0, atol=1e-6)


def test_weights_are_joined_as_they_were_split() -> None:
    theta = untrained(4, 2)
    np.testing.assert_allclose(join(*split(theta)), theta, rtol=0, atol=1e-15)
