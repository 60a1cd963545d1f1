"""Follows many jobs at once, and reports when one becomes slow or recovers.

An iteration is judged by its seconds per unit of work. Change points come from `RunLengths`; those
that show a job above its reference level are verified on the remembered iterations. While a job is
slow its reference stands still, and the recovery is judged by it.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from services.failslow.core.detection import verify
from services.failslow.core.detection.change import Change
from services.failslow.core.detection.limits import DetectionLimits
from services.failslow.core.detection.memory import Ints, Memory
from services.failslow.core.detection.runs import Floats, RunLengths

Bools = NDArray[np.bool_]
HOLD = 0.3
"""Probability of a slowdown at which the reference is no longer updated."""
RESUMED_NOISE = 0.03
"""Assumed standard deviation of the iterations of a job that is followed anew."""
PAUSES = 8
"""Remembered excursions of a job."""
PAUSE_LENGTH = (3, 20)
"""Iterations of an excursion that is noted; shorter ones never pass for a slowdown."""
USUAL = 0.03
"""Distance from an earlier reference at which the job is back at it."""
EVERY = 8
"""Iterations between two updates of the reference."""


class Detector:
    """State of `series` jobs, by row; memory per job is bounded by the limits."""

    def __init__(self, series: int, limits: DetectionLimits | None = None) -> None:
        self.limits = limits or DetectionLimits()
        self.runs = RunLengths.empty(series, self.limits)
        self.memory = Memory.empty(series, self.limits)
        self.size = np.zeros(series)
        """Largest size of the slowdown of a job that is slow, 0 of others."""
        self.since = np.zeros(series, np.int64)
        """Iteration of the onset of the newest slowdown."""
        self.usual = np.full(series, np.nan)
        """Reference before the job became faster than it."""
        self.work = np.zeros(series)
        """Logarithm of the work per iteration at the onset."""
        self.first = np.ones(series, np.bool_)
        """Whether the reference is still that of the job's start."""
        self.peak = np.zeros(series, np.int64)
        """Length of the excursion under way, in iterations."""
        self.excursions: list[deque[tuple[int, int]]] = [
            deque(maxlen=PAUSES) for _ in range(series)
        ]

    def begin(self, row: int) -> None:
        """Forget the job of this row: the next iterations are those of another one.

        A job may have run before it is followed, so that becoming faster proves nothing.
        """
        self.memory.clear(row)
        self.size[row], self.peak[row], self.usual[row] = 0.0, 0, np.nan
        self.first[row] = False
        self.excursions[row].clear()

    def resume(self, row: int, level: float, size: float, work: float) -> None:
        """Follow a job that was slow, by so much above its reference level."""
        self.begin(row)
        self.memory.level[row], self.memory.noise[row] = level, RESUMED_NOISE
        self.memory.support[row] = self.limits.most_support
        self.size[row], self.work[row] = size, np.log(work)
        count = np.array([float(self.limits.persistence)])
        self.runs.restart(
            np.array([row]), np.array([level + size]), np.array([RESUMED_NOISE]), count
        )

    def observe(self, rows: Ints, iteration: Ints, seconds: Floats, work: Floats) -> list[Change]:
        """Add one training iteration of each of these jobs, in ascending order of rows.

        Iterations of evaluations and checkpoints are left out by the caller.
        """
        log_work = np.log(work)
        values = np.log(seconds) - log_work
        self.memory.add(rows, iteration, values, log_work)
        self._refresh(rows)
        known = ~np.isnan(self.memory.level[rows])
        rows, values = rows[known], values[known]
        if not len(rows):
            return []
        level, noise = self.memory.level[rows], self.memory.noise[rows]
        everything = len(rows) == len(self.size)
        self.runs.observe(slice(None) if everything else rows, values, level, noise, self.limits)
        return self._judge(rows, values, level, noise)

    def _refresh(self, rows: Ints) -> None:
        """Update the references that are due; the first one begins a job's runs."""
        seen, limits = self.memory.seen[rows], self.limits
        slow = rows[(self.size[rows] > 0) & ((seen + rows) % EVERY == 0)]
        if len(slow):
            self.size[slow] = np.fmax(self.size[slow], self.memory.newest(slow, 12))
        due = rows[(seen >= limits.least_reference) & (self._is_due(rows, seen))]
        if not len(due):
            return
        fresh = np.isnan(self.memory.level[due])
        self.memory.refresh(due, limits)
        begun = due[fresh & ~np.isnan(self.memory.level[due])]
        if len(begun):
            self._begin_runs(begun)

    def _is_due(self, rows: Ints, seen: Ints) -> Bools:
        first = np.isnan(self.memory.level[rows])
        turn = (seen + rows) % np.where(seen < 40, EVERY // 4, EVERY) == 0
        held = (self.peak[rows] > 0) & (self.peak[rows] <= self.limits.longest)
        due: Bools = first | (turn & (self.size[rows] == 0) & ~held)
        return due

    def _judge(self, rows: Ints, values: Floats, level: Floats, noise: Floats) -> list[Change]:
        limits, runs = self.limits, self.runs
        probability, mean = runs.probability[rows], runs.mean[rows]
        slow = self.size[rows] > 0
        high = np.where(slow, -np.inf, level + 0.8 * limits.size)[:, None]
        low = np.where(slow, level + limits.recovery * self.size[rows], level - 0.03)[:, None]
        up = np.where(mean > high, probability, 0.0)
        down = np.where(mean < low, probability, 0.0)
        above, below = up.sum(axis=1), down.sum(axis=1)
        changes = [
            change
            for at in np.flatnonzero(~slow & (above > limits.probability))
            if (change := self._rise(int(rows[at]), int(up[at].argmax()) + 1, float(above[at])))
        ]
        changes += [
            change
            for at in np.flatnonzero(below > limits.probability)
            if (change := self._fall(int(rows[at]), int(down[at].argmax()) + 1, float(below[at])))
        ]
        self._follow_excursions(rows, ~slow & (values > level + np.maximum(0.08, 4 * noise)), above)
        return changes

    def _follow_excursions(self, rows: Ints, is_high: Bools, above: Floats) -> None:
        """Note excursions that end by themselves: those that repeat are pauses."""
        ended = rows[~is_high & (self.peak[rows] > 0) & (above < HOLD)]
        for row in ended[self.peak[ended] >= PAUSE_LENGTH[0]]:
            newest = (self.memory.seen[row] - 1) % self.limits.history
            end = int(self.memory.iteration[row, newest])
            self._note_excursion(row, end - int(self.peak[row]), end)
        self.peak[ended] = 0
        held = is_high | (above >= HOLD)
        self.peak[rows[held & (self.size[rows] == 0)]] += 1

    def _note_excursion(self, row: int, start: int, end: int) -> None:
        if PAUSE_LENGTH[0] <= end - start <= PAUSE_LENGTH[1]:
            self.excursions[row].append((start, end - start))

    def _rise(self, row: int, run: int, probability: float) -> Change | None:
        """Verify that the job has become slow."""
        limits, memory = self.limits, self.memory
        values, work, iteration = memory.last(row, limits.history)
        values, work, iteration = _usable(values, work, iteration)
        level, noise = float(memory.level[row]), float(memory.noise[row])
        if len(values) <= run:
            return None
        support = int(memory.support[row])
        segment = verify.segment_above(values, level, noise, support, run, limits)
        onset = int(iteration[-segment.length])
        pause = verify.usual_pause_at(onset, self.excursions[row])
        if not verify.is_slow(segment, pause, limits):
            return None
        if not verify.stands_out(values, segment, limits):
            return None
        if verify.is_work_change(values, work, segment.length, segment.size, noise):
            self._rebase(row, segment.length)
            return None
        if abs(level + segment.size - self.usual[row]) < USUAL:
            self._rebase(row, segment.length)
            return None
        self.size[row], self.peak[row], self.since[row] = segment.size, 0, onset
        self.work[row] = np.median(work[-segment.length :])
        at = int(iteration[-1])
        return Change(
            row,
            "slow",
            onset,
            at,
            float(np.exp(segment.size)),
            probability,
            segment.score,
            level,
            segment.length,
        )

    def _fall(self, row: int, run: int, probability: float) -> Change | None:
        """Verify a recovery, or that a faster level is the job's usual one."""
        limits, memory = self.limits, self.memory
        values, work, iteration = _usable(*memory.last(row, limits.history))
        run = min(run, len(values))
        if run < limits.persistence:
            return None
        level, noise, size = memory.level[row], memory.noise[row], float(self.size[row])
        if size == 0:
            noise = noise * verify.correlation(values[:-run])
        segment = verify.measure(values[-run:], level, noise, int(memory.support[row]))
        at, onset = int(iteration[-1]), int(iteration[-run])
        if size > 0:
            if not verify.is_recovered(segment, size, limits):
                return None
            has_same_work = abs(float(np.median(work[-run:])) - self.work[row]) < 0.04
            if has_same_work and segment.size > max(limits.size, size / 4):
                self.size[row] = segment.size
                return None
            self._note_excursion(row, int(self.since[row]), onset)
            self._recover(row, run, segment)
            return Change(row, "recovered", onset, at, float(np.exp(size)), probability)
        return self._speed_up(row, run, values, work, iteration, segment, probability)

    def _speed_up(
        self,
        row: int,
        run: int,
        values: Floats,
        work: Floats,
        iteration: Ints,
        segment: verify.Segment,
        probability: float,
    ) -> Change | None:
        limits = self.limits
        if segment.score > -limits.score or segment.agreement < limits.agreement:
            return None
        before = values[:-run]
        if verify.is_work_change(values, -work, run, -segment.size, float(self.memory.noise[row])):
            self._rebase(row, run)
            return None
        if (
            self.first[row]
            and run >= limits.early_settle - 2
            and len(before) >= limits.birth
            and int(self.memory.seen[row]) <= limits.birth_longest
            and verify.is_flat(before, float(self.memory.noise[row]))
            and -segment.size >= limits.birth_size
        ):
            self._rebase(row, run)
            slowdown = float(np.exp(-segment.size))
            return Change(row, "slow", int(iteration[0]), int(iteration[-1]), slowdown, probability)
        is_early = int(self.memory.seen[row]) <= limits.early
        if run >= (limits.early_settle if is_early else limits.settle):
            former = float(self.memory.level[row])
            self._rebase(row, run)
            self.usual[row] = np.nan if is_early else former
        return None

    def _recover(self, row: int, run: int, segment: verify.Segment) -> None:
        """Return to the reference from before the slowdown, unless the job is at another level."""
        if abs(segment.size) < 0.03 or abs(segment.score) < 3:
            self.memory.forget_before(row, run)
            self._restart(row)
        else:
            self._rebase(row, run)

    def _rebase(self, row: int, keep: int) -> None:
        """Make the level of the last iterations the job's reference."""
        self.memory.forget_before(row, keep)
        values = self.memory.last(row, keep)[0]
        self.memory.level[row] = np.nanmedian(values)
        self.memory.support[row] = len(values)
        self._restart(row)

    def _restart(self, row: int) -> None:
        one = np.array([row])
        self.size[row], self.peak[row], self.first[row] = 0.0, 0, False
        self._begin_runs(one)

    def _begin_runs(self, rows: Ints) -> None:
        memory = self.memory
        count = np.minimum(memory.support[rows], self.limits.memory).astype(np.float64)
        self.runs.restart(rows, memory.level[rows], memory.noise[rows], count)


def _usable(values: Floats, work: Floats, iteration: Ints) -> tuple[Floats, Floats, Ints]:
    usable = ~np.isnan(values)
    return values[usable], work[usable], iteration[usable]
