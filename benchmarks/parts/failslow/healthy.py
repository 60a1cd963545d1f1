"""False alarms of Berth on jobs without a slowdown."""

from __future__ import annotations

from benchmarks.parts.failslow.detectors import portions_of
from simulator.failslow import berth
from simulator.failslow.suite import JITTERS, draw_suite

MORE = 4
"""Times as many jobs per seed as the suite has; the slow ones are left out."""
HOUR_S = 3600


def healthy_figures(seeds: range, jobs: int) -> dict[str, dict[str, float]]:
    """Return false alarms by jitter, per 1,000 job-hours and per million iterations."""
    return {str(jitter): _of_jitter(jitter, seeds, jobs) for jitter in JITTERS}


def _of_jitter(jitter: int, seeds: range, jobs: int) -> dict[str, float]:
    healthy = [job for job in draw_suite(jitter, seeds, MORE * jobs) if not job.labels]
    alarms = sum(len(own) for portion in portions_of(healthy) for own in berth.detect(portion))
    hours = sum(float(job.seconds.sum()) for job in healthy) / HOUR_S
    iterations = sum(len(job.seconds) for job in healthy)
    return {
        "jobs": len(healthy),
        "job_hours": round(hours, 1),
        "alarms": alarms,
        "per_1000_job_hours": round(1000 * alarms / max(hours, 1e-9), 2),
        "per_million_iterations": round(1e6 * alarms / max(iterations, 1), 2),
    }
