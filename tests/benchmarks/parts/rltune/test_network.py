"""The compiled network is the one that is trained, and gradients are right."""

from __future__ import annotations

import numpy as np

from benchmarks.parts.rltune.network import (
    ACTOR,
    FEATURES,
    actor_logits,
    backward,
    forward,
    initial,
    layers_of,
    read_weights,
)

RANDOM = np.random.default_rng(5)
X = RANDOM.random((6, FEATURES))
THETA = initial(ACTOR, RANDOM)


def test_compiled_logits_are_those_of_the_layers() -> None:
    assert len(THETA) == len(read_weights())
    logits = forward(layers_of(THETA, ACTOR), X)[-1][:, 0]
    np.testing.assert_allclose(actor_logits(THETA, X), logits, rtol=1e-12)


def test_the_order_of_the_jobs_does_not_matter() -> None:
    order = RANDOM.permutation(len(X))
    np.testing.assert_allclose(actor_logits(THETA, X)[order], actor_logits(THETA, X[order]))


def test_the_gradient_is_that_of_small_differences() -> None:
    layers = layers_of(THETA, ACTOR)
    slope = RANDOM.normal(size=(len(X), 1))
    gradient = backward(layers, forward(layers, X), slope)
    for at in (0, 100, 250, 400, len(THETA) - 3, len(THETA) - 1):
        step = np.zeros_like(THETA)
        step[at] = 1e-6
        sides = [forward(layers_of(THETA + s, ACTOR), X)[-1] for s in (step, -step)]
        assert abs(((sides[0] - sides[1]) * slope).sum() / 2e-6 - gradient[at]) < 1e-6
