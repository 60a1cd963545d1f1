from __future__ import annotations

import numpy as np
import pytest

from shared.schedulers import job_network
from shared.schedulers.job_network import LEAST, MOST, WINDOW, Limits, features, scores, window


def test_features_are_above_0_and_below_1_and_missing_ones_are_full() -> None:
    rows = features(
        np.array([0.0, 43_200.0]),
        np.array([50.0, 500.0]),
        np.array([1.0, 256.0]),
        np.array([True, False]),
        Limits(100.0, 256.0),
    )
    assert rows[:, 0].tolist() == [LEAST, MOST]
    assert rows[:, 1].tolist() == [0.5, MOST]
    assert rows[:, 2].tolist() == [1 / 256, MOST]
    assert rows[:, 3:7].tolist() == [[MOST] * 4] * 2
    assert rows[:, 7].tolist() == [MOST, LEAST]


def test_the_network_has_961_weights_and_scores_each_job_alone() -> None:
    assert job_network.size() == 961
    draws = np.random.default_rng(0)
    weights, rows = draws.normal(size=961), draws.random((5, 8))
    together = scores(weights, rows)
    assert together.tolist() == pytest.approx(
        [float(scores(weights, row[None])[0]) for row in rows]
    )


def test_a_window_has_the_shortest_and_the_smallest_jobs_once() -> None:
    request_s = np.arange(300.0)
    gpus = 300.0 - request_s
    chosen = window(request_s, gpus)
    assert len(set(chosen.tolist())) == WINDOW
    assert set(chosen.tolist()) == {*range(64), *range(236, 300)}
    assert window(request_s[:5], gpus[:5]).tolist() == [0, 1, 2, 3, 4]
