"""Puts the progress that a running job reports into words."""

from __future__ import annotations

from collections.abc import Mapping

from cli.text.times import clock, now_ms, span


def progress_lines(job: Mapping[str, object]) -> list[str]:
    """Return the iterations that a running job reported, and when they should end."""
    ends_at, total = job.get("expected_end_at"), job.get("progress_total")
    if job.get("phase") != "running" or not isinstance(ends_at, int) or not ends_at:
        return []
    done = f"iteration {job['progress_step']:,} of {total:,} at {clock(job['progressed_at'])}"
    as_of = job.get("as_of")
    left_ms = ends_at - (as_of if isinstance(as_of, int) else now_ms())
    if left_ms <= 0:
        return [f"{done}; it ran past the end that follows from its reports, {clock(ends_at)}"]
    return [f"{done}; about {span(left_ms)} left by its own reports, until {clock(ends_at)}"]
