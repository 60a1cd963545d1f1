"""The progress of a training by what it prints: bars of tqdm, `iteration 12/100`, `Epoch 3/10`.

The text is a worker's and may be anything: what is read is short, each pattern takes time that
grows with its length alone, and numbers have few digits. Bars also count parts of a training: an
epoch, an evaluation, the loading of data. What is not known to count the whole is left out.
"""

from __future__ import annotations

import re

TAIL_BYTES = 8192
"""The end of the output that is looked at."""
LARGEST = 2**53 - 1
MOST_TOTALS = 64
"""Finished bars whose totals are remembered."""
NUMBER = r"(\d{1,12})"
BAR = re.compile(rf"\d{{1,3}}%\|[^|]*\|\s*{NUMBER}/{NUMBER} \[")
"""tqdm's `{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, ...]`; bars whose
numbers are scaled (`1.2k/10.0k`) or without a total are not read."""
_COUNT = rf"\b[ :#=\[(]*{NUMBER} ?(?:/|of) ?{NUMBER}\b"
ITERATION = re.compile(rf"\b(?:global[_ ]step|steps?|iterations?|iters?){_COUNT}", re.IGNORECASE)
EPOCH = re.compile(rf"\bepochs?{_COUNT}", re.IGNORECASE)
BREAK = re.compile(r"[\r\n]+")

Counted = tuple[int, int]
"""Done, and all of them."""


def newest_counts(tail: bytes) -> tuple[Counted | None, Counted | None]:
    """Return the newest epoch, and the newest iterations on its line or after it."""
    iterations: Counted | None = None
    for line in reversed(BREAK.split(tail[-TAIL_BYTES:].decode("ascii", errors="replace"))):
        iterations = iterations or last_count(BAR, line) or last_count(ITERATION, line)
        if (epoch := last_count(EPOCH, line)) is not None:
            return epoch, iterations
    return None, iterations


def last_count(pattern: re.Pattern[str], line: str) -> Counted | None:
    """Return the last plausible count of a line."""
    counted = None
    for match in pattern.finditer(line):
        done, total = int(match[1]), int(match[2])
        if total > 0 and done <= total:
            counted = done, total
    return counted


class WholeCount:
    """Iterations without an epoch: a count that begins again has counted a part."""

    def __init__(self) -> None:
        self._last: Counted | None = None
        self._ended: set[int] = set()
        self._is_partial = False

    def note(self, now: Counted) -> Counted | None:
        last, (done, total) = self._last, now
        if last is not None and total != last[1]:
            if last[0] < last[1]:
                return None  # An evaluation, while the training's own bar is under way.
            self._is_partial |= total in self._ended
        elif last is not None and done < last[0]:
            self._is_partial = True
        self._last = now
        if done == total and len(self._ended) < MOST_TOTALS:
            self._ended.add(total)
        return None if self._is_partial else now


class EpochCount:
    """Iterations of epochs: all epochs have as many as the first."""

    def __init__(self) -> None:
        self._epoch = (0, 0)
        self._done = self._each = 0

    def note(self, epoch: Counted | None, now: Counted | None) -> Counted | None:
        """Return the count over all epochs; one without iterations counts once the next begins.

        The line that names an epoch may be too old to be seen: then its iterations go on.
        """
        if epoch is None and (now is None or now[1] != self._each or now[0] < self._done):
            return None
        self._epoch = epoch or self._epoch
        before, epochs = max(0, self._epoch[0] - 1), self._epoch[1]
        if now is None:
            return None if self._each else (before, epochs)
        if self._each not in (0, now[1]) or now[1] * epochs > LARGEST:
            return None
        self._done, self._each = now
        return before * self._each + self._done, self._each * epochs


class PrintedProgress:
    """The counts that one worker has printed so far; times are taken elsewhere."""

    def __init__(self) -> None:
        self._whole = WholeCount()
        self._epochs: EpochCount | None = None

    def note(self, tail: bytes) -> Counted | None:
        """Return how far the whole training is; None: the output does not say it."""
        epoch, iterations = newest_counts(tail)
        if epoch is not None and self._epochs is None:
            self._epochs = EpochCount()
        if self._epochs is not None:
            return self._epochs.note(epoch, iterations)
        return None if iterations is None else self._whole.note(iterations)
