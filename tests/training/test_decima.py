"""The training of Decima's network, on its first weights."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.stage_dags.graph import Floats
from simulator.stage_dags.network import first_weights, size
from training.decima import Ratios, train


def test_the_first_weights_lose_little_to_the_heuristic() -> None:
    ratios = Ratios([1, 2], alpha=0.0, conserves=False)
    assert ratios.loss(first_weights(np.random.default_rng(0))) == pytest.approx(0.0, abs=0.1)


def test_weights_that_validate_best_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss is the distance from ones, which each generation approaches."""

    def distance(theta: Floats) -> float:
        return float(((theta - 1.0) ** 2).mean())

    monkeypatch.setattr(Ratios, "loss", lambda _, theta: distance(theta))
    best, kept = train(np.zeros(size()), 0.0, conserves=False, generations=6, seed=0)
    assert kept == 6
    assert 0.0 < distance(best) < 1.0
