"""A pool's policy changes where its own past shows a gain beyond chance, once a day at most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator.engine.candidate import TrialCandidate, TrialResult
from simulator.engine.policy_change import Choice, change_reason, choose_trial
from simulator.metrics.outcome import HOUR_S, Floats, Ints

HOURS = 96
JOBS_PER_HOUR = 5
SUBMIT_S = np.repeat(np.arange(HOURS) * HOUR_S, JOBS_PER_HOUR)


def trial(delay_s: Floats, submit_s: Floats = SUBMIT_S, tenant: Ints | None = None) -> TrialResult:
    mean_s, p99_s = float(delay_s.mean()), float(np.quantile(delay_s, 0.99))
    figures = (len(delay_s), mean_s, p99_s, mean_s, 0.5, 0)
    tenants = np.zeros(len(delay_s), np.int64) if tenant is None else tenant
    return TrialResult(TrialCandidate("other", {}), *figures, submit_s, delay_s, tenants)


def waits(seed: int, mean_s: float = 600.0) -> Floats:
    """Return waits whose hours are alike, as a queue's are, and heavy in the tail."""
    draw = np.random.default_rng(seed)
    busy = np.repeat(draw.lognormal(sigma=0.8, size=HOURS), JOBS_PER_HOUR)
    return np.asarray(mean_s * busy * draw.exponential(size=len(busy)), np.float64)


def choose(*delays_s: Floats, least_gain: float = 0.05, changed_h: float = np.inf) -> Choice:
    trials = [trial(delay_s) for delay_s in delays_s]
    return choose_trial(trials, least_gain, hours_since_change=changed_h)


def test_the_best_of_those_that_are_better_beyond_chance_is_chosen() -> None:
    present = waits(1)
    choice = choose(present, 0.8 * present, 0.5 * present, 1.2 * present)
    assert choice.index == 2
    assert choice.reason.startswith("mean wait -50.0% [-")
    assert [round(one.gain, 2) for one in choice.comparisons] == [-0.2, -0.5, 0.2]


def test_a_gain_below_the_least_one_changes_nothing() -> None:
    present = waits(1)
    choice = choose(present, 0.97 * present)
    assert (choice.index, choice.reason) == (
        0,
        "no other policy has 5% shorter waits beyond chance",
    )
    assert choose(present, 0.97 * present, least_gain=0.02).index == 1


def test_a_large_gain_by_one_hour_is_chance() -> None:
    present = waits(1)
    present[:JOBS_PER_HOUR] = present.sum()
    other = present.copy()
    other[:JOBS_PER_HOUR] = 0.0
    choice = choose(present, other)
    assert choice.comparisons[0].gain < -0.5
    assert choice.index == 0


def test_policies_that_differ_by_chance_alone_are_rarely_changed() -> None:
    changes = sum(
        choose(*(waits(10 * past + candidate) for candidate in range(4)), least_gain=0.0).index > 0
        for past in range(100)
    )
    assert changes <= 10, "the error over all candidates is 5 %"


@pytest.mark.parametrize(("changed_h", "index"), [(0.0, 0), (23.9, 0), (24.0, 1), (np.inf, 1)])
def test_a_policy_changes_once_a_day_at_most(changed_h: float, index: int) -> None:
    present = waits(1)
    choice = choose(present, 0.5 * present, changed_h=changed_h)
    assert choice.index == index
    if not index:
        assert choice.reason.endswith("h ago, and changes once in 24 h at most")


def test_a_past_that_cannot_tell_changes_nothing() -> None:
    one_hour = np.zeros(5)
    slow = trial(np.full(5, 100.0), submit_s=one_hour)
    fast = trial(np.full(5, 1.0), submit_s=one_hour)
    choice = choose_trial([slow, fast])
    assert (choice.index, choice.comparisons[0].text) == (0, "-99.0% [unknown]")
    assert choose(np.zeros(HOURS * JOBS_PER_HOUR), waits(1)).index == 0


def test_a_tenant_with_most_of_the_jobs_does_not_choose_the_policy_of_all() -> None:
    present = waits(1)
    tenant = np.where(np.arange(len(present)) % JOBS_PER_HOUR == 0, 1, 0)
    other = np.where(tenant == 1, 3.0, 0.2) * present
    choice = choose_trial([trial(present, tenant=tenant), trial(other, tenant=tenant)])
    (comparison,) = choice.comparisons
    assert comparison.gain < -0.1 and comparison.tenant_interval is not None
    assert comparison.tenant_interval[1] > 0.0 and choice.index == 0
    alike = choose_trial([trial(present, tenant=tenant), trial(0.5 * present, tenant=tenant)])
    assert alike.index == 1


def test_without_other_candidates_the_present_settings_stay() -> None:
    assert choose(waits(1)).index == 0


def test_the_reason_of_a_change_says_where_stops_made_waits_longer() -> None:
    present, best = trial(waits(1)), trial(0.5 * waits(1))
    ranked = replace(present, candidate=TrialCandidate("present", {"preemption": "ranked"}))
    closed = replace(best, candidate=TrialCandidate("fcfs", {"preemption": "class"}))
    choice = choose_trial([ranked, closed])
    text = change_reason(ranked, closed, choice)
    assert text.startswith(
        "preemption by rank closes, as waits are longer with it; fcfs: mean wait"
    )
    assert text.endswith(f"simulated on {closed.jobs} recorded jobs")
    assert change_reason(closed, ranked, choice).startswith("present: mean wait")
