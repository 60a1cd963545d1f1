"""Runs of the programs of gangs, by what they print, and what was lost or ran twice by them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from shared.contracts.reports import LogLines

BEGUN, ENDED = "begun", "ended"
PROGRAM = (
    f'read up rest < /proc/uptime; echo "{BEGUN} $up"; sleep "$0"; '
    f'read up rest < /proc/uptime; echo "{ENDED} $up"'
)
"""Prints the seconds since the boot of the machine at its begin and its end, to 10 ms: a clock that
containers share with the machine."""


@dataclass(slots=True)
class Times:
    """Seconds since the boot at which one attempt of a worker began and ended.

    A line that is relayed twice is the same time; a program that runs twice has two.
    """

    begun_s: set[float] = field(default_factory=set)
    ended_s: set[float] = field(default_factory=set)


@dataclass(slots=True)
class Runs:
    """Begins and ends that the workers of all jobs printed."""

    attempts: defaultdict[tuple[str, int, int], Times] = field(
        default_factory=lambda: defaultdict(Times)
    )
    """By job, rank and attempt."""

    def note(self, output: LogLines) -> None:
        times = self.attempts[output.job_id, output.rank, output.attempt]
        for line in output.lines:
            word, _, up = line.partition(" ")
            if word == BEGUN:
                times.begun_s.add(float(up))
            elif word == ENDED:
                times.ended_s.add(float(up))

    def running_s(self, job_id: str, workers: int) -> float | None:
        """Return when the last worker of the first attempt began; None until all have."""
        all_times = [self.attempts.get((job_id, rank, 1), Times()) for rank in range(workers)]
        if not all(times.begun_s for times in all_times):
            return None
        return max(min(times.begun_s) for times in all_times)

    def doubles(self) -> int:
        """Return how often a worker began again: in one attempt, or before its last one ended."""
        again = sum(max(0, len(times.begun_s) - 1) for times in self.attempts.values())
        overlaps = sum(
            max(times.ended_s) > min(following.begun_s)
            for (job_id, rank, attempt), times in self.attempts.items()
            if (following := self.attempts.get((job_id, rank, attempt + 1)))
            and times.ended_s
            and following.begun_s
        )
        return again + overlaps
