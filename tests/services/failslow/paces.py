"""Changes of the pace of a job, for the tests of fail-slow."""

from __future__ import annotations

from typing import Any

from shared.contracts.paces import JobPaceChanged

SLOW = {
    "job_id": "j1",
    "attempt": 1,
    "is_slow": True,
    "since_step": 5,
    "iterations": 10,
    "slowdown": 1.5,
    "iteration_s": 1.5,
    "usual_s": 1.0,
    "score": 9.0,
    "confidence": 1.0,
}


def pace_change(**changes: Any) -> JobPaceChanged:
    """Return the change of a job that became half as slow again, with other values as named."""
    return JobPaceChanged.model_validate(SLOW | changes)
