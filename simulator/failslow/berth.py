"""Berth's detector over recorded series: all jobs at once, iteration by iteration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.failslow.core.detection.change import Change
from services.failslow.core.detection.detector import Detector
from services.failslow.core.detection.limits import DetectionLimits
from simulator.failslow.series import Detection, Series


def detect(jobs: Sequence[Series], limits: DetectionLimits | None = None) -> list[list[Detection]]:
    """Return the slowdowns that Berth declares, by job."""
    detections: list[list[Detection]] = [[] for _ in jobs]
    for change in changes_of(jobs, limits):
        if change.kind == "slow":
            detections[change.row].append(Detection(change.onset, change.at))
    return detections


def changes_of(jobs: Sequence[Series], limits: DetectionLimits | None = None) -> list[Change]:
    """Return all verified changes, in order; masked iterations are not observed."""
    detector = Detector(len(jobs), limits)
    kept = [np.flatnonzero(~job.masked) for job in jobs]
    lengths = np.array([len(places) for places in kept])
    longest = int(lengths.max(initial=0))
    table = np.zeros((3, longest, len(jobs)))
    for row, (job, places) in enumerate(zip(jobs, kept, strict=True)):
        for field, column in enumerate((job.iteration, job.seconds, job.tokens)):
            table[field, : len(places), row] = column[places]
    changes: list[Change] = []
    for step in range(longest):
        rows = np.flatnonzero(lengths > step)
        iteration, seconds, tokens = table[:, step, rows]
        changes += detector.observe(rows, iteration.astype(np.int64), seconds, tokens)
    return changes
