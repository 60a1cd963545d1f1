"""RLTune's actor and critic: layers as one vector, forward in compiled code and in numpy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.rltune.allocation import compiled

Floats = NDArray[np.float64]
FEATURES = 7
ACTOR = (FEATURES, 32, 16, 8, 1)
"""Widths of the layers that every job in sight goes through, with ReLU between them."""
BATCH_JOBS = 256
"""Jobs of an episode."""
WEIGHTS = Path(__file__).with_name("weights.json")


def initial(widths: tuple[int, ...], random: np.random.Generator) -> Floats:
    """Return weights as TensorFlow's dense layers begin: Glorot uniform, biases 0."""
    parts = []
    for a, b in zip(widths, widths[1:], strict=False):
        edge = np.sqrt(6.0 / (a + b))
        parts += [random.uniform(-edge, edge, a * b), np.zeros(b)]
    return np.concatenate(parts)


def layers_of(theta: Floats, widths: tuple[int, ...]) -> list[tuple[Floats, Floats]]:
    """Return (weights [a, b], biases [b]) of each layer, as views of `theta`."""
    layers, at = [], 0
    for a, b in zip(widths, widths[1:], strict=False):
        layers.append((theta[at : at + a * b].reshape(a, b), theta[at + a * b : at + a * b + b]))
        at += (a + 1) * b
    return layers


def forward(layers: list[tuple[Floats, Floats]], x: Floats) -> list[Floats]:
    """Return the inputs [n, a] of each layer, and at last the outputs [n, 1]."""
    values = [x]
    for number, (weights, biases) in enumerate(layers):
        z = values[-1] @ weights + biases
        values.append(z if number == len(layers) - 1 else np.maximum(z, 0.0))
    return values


def backward(layers: list[tuple[Floats, Floats]], values: list[Floats], slope: Floats) -> Floats:
    """Return the gradient by the vector of weights, given that by the outputs [n, 1]."""
    parts: list[Floats] = []
    for number in range(len(layers) - 1, -1, -1):
        weights, _ = layers[number]
        parts = [(values[number].T @ slope).ravel(), slope.sum(axis=0), *parts]
        slope = (slope @ weights.T) * (values[number] > 0.0)
    return np.concatenate(parts)


@compiled
def actor_logits(theta: Any, rows: Any) -> Any:
    """Return a logit per job [n] of its features [n, 7]."""
    x, at = rows, 0
    for width in ACTOR[1:]:
        inputs = x.shape[1]
        biases = at + inputs * width
        z = np.empty((len(x), width))
        for row in range(len(x)):
            for unit in range(width):
                total = theta[biases + unit]
                for feature in range(inputs):
                    total += x[row, feature] * theta[at + feature * width + unit]
                z[row, unit] = total if width == 1 else max(total, 0.0)
        at = biases + width
        x = z
    return x[:, 0].copy()


def read_weights(path: Path = WEIGHTS) -> Floats:
    """Return the committed actor."""
    return np.array(json.loads(path.read_text())["actor"], np.float64)


def jobs_per_epoch(episodes: int) -> int:
    """Return the jobs that an epoch simulates: the base runs beside every episode."""
    return 2 * episodes * BATCH_JOBS


def training_budget(path: Path = WEIGHTS) -> dict[str, Any]:
    """Return how long the committed actor was trained."""
    run = json.loads(path.read_text())
    return {
        "epochs": len(run["mean_rewards"]),
        "episodes": run["episodes"],
        "simulated_jobs": len(run["mean_rewards"]) * jobs_per_epoch(run["episodes"]),
        "cpu_s": run["cpu_s"],
    }
