"""Errors of the replay of the recorded settings: its waits against the recorded ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.metrics.outcome import Bools, Floats, ScheduleOutcome
from simulator.recorded.rows import Change, change, delays_s, units_of

CLOSE_S = 60.0
"""Error of a wait that counts as close."""


@dataclass(frozen=True, slots=True)
class WaitErrors:
    """Replayed less recorded times of the counted jobs, cluster seconds."""

    recorded_mean_s: float
    replayed_mean_s: float
    change: Change
    """Replayed mean over the recorded one, less 1."""
    mean_error_s: float
    mean_absolute_error_s: float
    p90_absolute_error_s: float
    close_share: float
    """Share of the jobs whose error is at most 60 s."""


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Errors of the replay under the settings that the pool had.

    `first_wait` is the time to the first GPUs, which is the policy's alone; `wait` has the time
    that nodes took to start programs too, which no replay knows.
    """

    first_wait: WaitErrors
    wait: WaitErrors


def fidelity_of(recorded: ScheduleOutcome, replayed: ScheduleOutcome, counted: Bools) -> Fidelity:
    """Return the errors over the counted jobs, of both outcomes in the same order."""
    chosen = counted & replayed.fits
    unit = units_of(recorded, chosen)

    def errors(truth_s: Floats, replay_s: Floats) -> WaitErrors:
        error_s = replay_s - truth_s
        absolute_s = np.abs(error_s)
        return WaitErrors(
            float(truth_s.mean()),
            float(replay_s.mean()),
            change(truth_s, replay_s, unit),
            float(error_s.mean()),
            float(absolute_s.mean()),
            float(np.quantile(absolute_s, 0.9)),
            float((absolute_s <= CLOSE_S).mean()),
        )

    return Fidelity(
        errors(recorded.wait_s[chosen], replayed.wait_s[chosen]),
        errors(delays_s(recorded)[chosen], delays_s(replayed)[chosen]),
    )
