"""Iteration times of one job, and what the detector reports about them."""

from __future__ import annotations

import numpy as np

from services.failslow.core.detection.change import Change
from services.failslow.core.detection.detector import Detector
from services.failslow.core.detection.runs import Floats

JITTER = 0.01


def steady(length: int, seed: int = 0, jitter: float = JITTER) -> Floats:
    rng = np.random.default_rng(seed)
    return np.exp(jitter * rng.standard_normal(length))


def changes(
    seconds: Floats, tokens: Floats | None = None, first: int = 0, detector: Detector | None = None
) -> list[tuple[str, int, int]]:
    """Return (kind, onset, at) of the changes of a job with these iterations."""
    return [(one.kind, one.onset, one.at) for one in changes_of(seconds, tokens, first, detector)]


def changes_of(
    seconds: Floats, tokens: Floats | None = None, first: int = 0, detector: Detector | None = None
) -> list[Change]:
    detector = detector or Detector(1)
    work = np.ones(len(seconds)) if tokens is None else tokens
    return [
        change
        for place in range(len(seconds))
        for change in detector.observe(
            np.array([0]), np.array([first + place]), seconds[[place]], work[[place]]
        )
    ]
