"""LightGBM trained on the jobs that had ended when the judged window began.

`predict_qssf` is QSSF's half (Hu 2021): the mean from who, what and when. `predict_quantiles` is a
harder rival: one model per quantile of log10 s, which also sees the last run times of similar jobs
at each submission. `predict_unseen` trains the same models on other traces only, as a model that is
shipped would be.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.parts.prediction.jobs import Floats, RecordedJobs

ROUNDS = 80
SETTINGS: dict[str, Any] = {
    "num_leaves": 31,
    "learning_rate": 0.1,
    "min_data_in_leaf": 50,
    "max_bin": 127,
    "num_threads": 1,
    "deterministic": True,
    "seed": 1,
    "verbosity": -1,
}
REMEMBERED = 10
"""Run times of a group of which a feature is made."""
GROUP_LEVELS = (2, 4, 5, 6, 7)
"""Levels of `history.groups` that make features: tenant, recent, user and size, user, name."""
UNSEEN_ROWS = 30_000
"""Jobs of other traces that a model is trained on."""
ROLLING_SHARE = 0.1
"""Weight of QSSF's rolling estimate beside the model's."""


def is_installed() -> bool:
    return find_spec("lightgbm") is not None


def predict_qssf(jobs: RecordedJobs, rolling_s: Floats) -> Floats:
    """Return QSSF's run time, in s: 0.1 of the rolling estimate and 0.9 of the model's."""
    model_s = fit_and_predict(jobs, calendar(jobs), jobs.ran_s, objective="regression")
    mixed = ROLLING_SHARE * rolling_s + (1.0 - ROLLING_SHARE) * model_s
    return np.where(model_s > 0.0, mixed, rolling_s)


def predict_quantiles(jobs: RecordedJobs) -> Floats:
    """Return the three quantiles, in s, by a model of each."""
    features = np.column_stack((calendar(jobs), past_run_times(jobs)))
    logs = np.log10(np.maximum(jobs.ran_s, 1.0))
    predicted = [
        fit_and_predict(jobs, features, logs, objective="quantile", alpha=q)
        for q in (0.1, 0.5, 0.9)
    ]
    return np.asarray(10.0 ** np.stack(predicted, axis=1))


def predict_unseen(jobs: RecordedJobs, others: Sequence[RecordedJobs]) -> Floats:
    """Return the three quantiles, in s, by models that have seen no job of this trace."""
    every = max(1, sum(map(len, others)) // UNSEEN_ROWS)
    features = np.concatenate([portable_features(other)[::every] for other in others])
    logs = np.concatenate([np.log10(np.maximum(other.ran_s[::every], 1.0)) for other in others])
    own = portable_features(jobs)[jobs.judged]
    predicted = np.zeros((len(jobs), 3))
    for column, q in enumerate((0.1, 0.5, 0.9)):
        predicted[jobs.judged, column] = fit(features, logs, objective="quantile", alpha=q)(own)
    return np.asarray(10.0**predicted)


def portable_features(jobs: RecordedJobs) -> Floats:
    """Return what means the same in every trace: GPUs, hour, weekday, and past run times."""
    return np.column_stack((calendar(jobs)[:, 3:6], past_run_times(jobs)))


def fit_and_predict(jobs: RecordedJobs, features: Floats, target: Floats, **extra: Any) -> Floats:
    known = jobs.known_before_judgement()
    predicted = np.zeros(len(jobs))
    model = fit(features[known], target[known], **extra)
    predicted[jobs.judged] = model(features[jobs.judged])
    return predicted


def fit(features: Floats, target: Floats, **extra: Any) -> Callable[[Floats], Floats]:
    """Train a model and return its prediction of the target."""
    import lightgbm

    data = lightgbm.Dataset(features, target)
    model = lightgbm.train({**SETTINGS, **extra}, data, ROUNDS)
    return lambda rows: np.asarray(model.predict(rows, num_threads=1))


def calendar(jobs: RecordedJobs) -> Floats:
    """Return who, what and when: QSSF's features, as far as the traces have them."""
    day = jobs.submit_s // 86400
    hour = jobs.submit_s % 86400 / 3600
    return np.column_stack(
        (jobs.tenant, jobs.user, jobs.name, jobs.gpus, hour, day % 7, day % 30)
    ).astype(np.float64)


def past_run_times(jobs: RecordedJobs) -> Floats:
    """Return per job the last and the mean log10 s of each of its groups; nan without any."""
    groups = jobs.work.groups[:, GROUP_LEVELS].tolist()
    logs = np.log10(np.maximum(jobs.ran_s, 1.0)).tolist()
    seen: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
    features = np.full((len(jobs), 2 * len(GROUP_LEVELS)), np.nan)
    for ended, job in jobs.steps():
        for one in ended:
            for group in groups[one]:
                seen[group].append(logs[one])
        row = features[job]
        for column, group in enumerate(groups[job]):
            if group >= 0 and (past := seen.get(group)):
                row[2 * column], row[2 * column + 1] = past[-1], sum(past) / len(past)
    return features
