"""Scores of detections against labels.

A detection belongs to the label in which it was declared: between the first slow iteration and
`SLACK` iterations after the last one. Each label takes the first of its detections; any other is
a false one, and so is one that belongs to no label. A job is judged right if it was declared slow
and has a label, or neither. The delay of a label is from its first iteration to the declaration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from simulator.failslow.series import Detection, Series

SLACK = 10
"""Tolerance, iterations: that of the peers' contract of metrics."""


@dataclass(slots=True)
class Score:
    """Counts over jobs; ratios without a denominator are 1."""

    right: int = 0
    false: int = 0
    missed: int = 0
    jobs: int = 0
    jobs_right: int = 0
    delays: list[int] = field(default_factory=list)

    def add(self, series: Series, detections: Sequence[Detection]) -> None:
        left = list(series.labels)
        for detection in sorted(detections, key=lambda detection: detection.at):
            label = next(
                (label for label in left if label[0] <= detection.at <= label[1] + SLACK), None
            )
            if label is None:
                self.false += 1
                continue
            left.remove(label)
            self.right += 1
            self.delays.append(detection.at - label[0])
        self.missed += len(left)
        self.jobs += 1
        self.jobs_right += bool(detections) == bool(series.labels)

    def plain(self) -> dict[str, float | None]:
        return {
            "precision": _ratio(self.right, self.right + self.false),
            "recall": _ratio(self.right, self.right + self.missed),
            "job_accuracy": _ratio(self.jobs_right, self.jobs),
            "median_delay_iterations": median(self.delays) if self.delays else None,
        }


def score_all(jobs: Sequence[Series], detections: Sequence[Sequence[Detection]]) -> Score:
    score = Score()
    for series, own in zip(jobs, detections, strict=True):
        score.add(series, own)
    return score


def _ratio(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 1.0
