"""Properties of every run in which stops by rank make progress, whichever engine runs it."""

from __future__ import annotations

import numpy as np

from simulator.kernel.run import Rules
from simulator.metrics.outcome import Floats, ScheduleOutcome
from simulator.workload.stop_costs import LONGEST_S

LOSS_SHARE = 0.015


def assert_progress(outcome: ScheduleOutcome, rules: Rules, gpus: int) -> None:
    """Every job ended after few starts with all of its work, and the stops kept their budget."""
    assert outcome.fits.all() and outcome.ended.all()
    assert (outcome.starts <= most_starts(outcome, rules)).all()
    kept_s = outcome.held_s - outcome.lost_s
    assert np.abs(kept_s - outcome.duration_s).max() < 1e-3
    held_gpu_s = float((outcome.held_s * outcome.gpus).sum())
    lost_gpu_s = float((outcome.lost_s * outcome.gpus).sum())
    # One bucket is there at the beginning, and the last round may overdraw it by its stops.
    bucket_gpu_s = LOSS_SHARE * gpus * rules.loss_window_s
    most_lost_s = max(rules.checkpoint_window_s, longest_interval_s(rules) / 20)
    most_lost_s += rules.restart_s * float(outcome.gpus.max()) ** rules.restart_growth
    assert lost_gpu_s <= LOSS_SHARE * held_gpu_s + bucket_gpu_s + gpus * most_lost_s


def most_starts(outcome: ScheduleOutcome, rules: Rules) -> Floats:
    """Return the bound on the starts of each job.

    The cheap ones, then as many as its work has room for between protections that double.
    """
    interval_s = longest_interval_s(rules)
    window_s = max(rules.checkpoint_window_s, interval_s / 20) + interval_s
    room = np.maximum(1.0, (outcome.duration_s + window_s) / rules.start_protection_s)
    bound: Floats = 2 + rules.cheap_restarts + np.floor(np.log2(room))
    return bound


def longest_interval_s(rules: Rules) -> float:
    """Return the longest interval between checkpoints that any job may have."""
    return max(LONGEST_S, rules.checkpoint_s) if rules.checkpoint_spread else rules.checkpoint_s
