"""History: the array forms agree with the scalar functions bit for bit, and groups are bounded."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history import distributions, history
from services.priority.core.history.distributions import BINS, FADE, TRUST, Floats
from services.priority.core.history.history import History
from services.priority.core.history.job_groups import HistoryGroup, groups


def scalar_estimate(counts: dict[HistoryGroup, Floats], *job: object) -> Floats:
    p: Floats = np.zeros(BINS)
    distributions.fill_prior(p)
    for group, trust in zip(groups(*job), TRUST, strict=True):
        if group in counts:
            distributions.shrink(counts[group], trust, p)
    return p


def test_learning_and_estimating_by_arrays_is_learning_and_estimating_bin_by_bin() -> None:
    rng = np.random.default_rng(3)
    known, counts = History(), dict[HistoryGroup, Floats]()
    for n in range(400):
        job = (f"t{n % 3}", f"u{n % 7}", f"run-{n % 5}", float(1 << n % 4))
        seconds = float(rng.lognormal(5, 3))
        known.learn(*job, seconds)
        for group, fade in zip(groups(*job), FADE, strict=True):
            if group is not None:
                distributions.add_sample(
                    counts.setdefault(group, np.zeros(BINS)), distributions.bin_of(seconds), fade
                )
    for n in range(30):
        job = (f"t{n % 4}", f"u{n % 8}", f"run-{n % 6}", float(1 << n % 5))
        result, p = known.estimate(*job), scalar_estimate(counts, *job)
        assert result.p.tolist() == p.tolist()
        assert result.mean_s == distributions.mean_left_s(p, 0.0)
        assert [result.p10_s, result.p50_s, result.p90_s] == [
            distributions.quantile_s(p, q) for q in (0.1, 0.5, 0.9)
        ]
        assert result.gittins_s == distributions.gittins_s(p, 0.0)


def test_similar_jobs_are_estimated_by_their_name_and_others_by_their_tenant() -> None:
    known = History()
    for n in range(50):
        known.learn("red", "u", f"train-{n}", 1.0, 100.0)
        known.learn("red", "v", f"sweep-{n}", 1.0, 10_000.0)
    assert known.estimate("red", "u", "train-99", 1.0).p50_s == pytest.approx(100, rel=0.5)
    assert known.estimate("red", "v", "sweep-99", 1.0).p50_s == pytest.approx(10_000, rel=0.5)
    assert known.estimate("red", "w", "other", 1.0).samples > 0


def test_a_tenant_that_floods_history_with_names_forgets_its_own_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "GROUPS_MOST", 120)
    monkeypatch.setattr(history, "GROUPS_LEFT", 90)
    known = History()
    for n in range(20):
        known.learn("red", "ada", "train-1", 8.0, 5000.0)
        known.learn("red", "ada", f"sweep-{'abcdefghijklmnopqrst'[n]}", 1.0, 60.0)
    before = {group: one.tolist() for group, one in known.counts.items() if "red" in group}
    named = [f"{a}-{b}" for a in "ghijklmnop" for b in "qrstuvwxyz"]
    for name in named:
        known.learn("blue", name, name, 0.5, 1.0)
        assert len(known.rows) <= 120
    assert len(before) == 1 + 2 * 3 + 1 + 21
    assert {group: one.tolist() for group, one in known.counts.items() if "red" in group} == before
    assert known.estimate("blue", named[-1], named[-1], 0.5).p50_s < 2.0, "the last ones are kept"
    assert ("name", "blue", named[0], named[0]) not in known.rows


def test_what_was_forgotten_is_learnt_anew_and_every_row_is_its_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With and without the cache of rows, whose numbers change when groups are forgotten."""
    monkeypatch.setattr(history, "GROUPS_MOST", 60)
    monkeypatch.setattr(history, "GROUPS_LEFT", 40)
    rng = np.random.default_rng(7)
    known, fresh = History(), History()
    for _ in range(300):
        job = (f"t{rng.integers(3)}", f"u{rng.integers(4)}", "abcdef"[rng.integers(6)], 1.0)
        seconds = float(rng.lognormal(5, 3))
        for one in (known, fresh):
            one.learn(*job, seconds)
        fresh.learnt.clear()
        assert known.estimate(*job).p.tolist() == fresh.estimate(*job).p.tolist()
        assert sorted(known.rows.values()) == list(range(len(known.rows)))
    assert known == fresh
