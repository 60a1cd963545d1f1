"""Percentiles of measured times."""

from __future__ import annotations


def percentile(values: list[float], share: float) -> float:
    """Return the value at the nearest rank; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summarize(times_s: list[float]) -> dict[str, object]:
    """Return count, p50, p99 and maximum, in seconds."""
    return {
        "count": len(times_s),
        "p50": round(percentile(times_s, 0.5), 2),
        "p99": round(percentile(times_s, 0.99), 2),
        "max": round(max(times_s, default=0.0), 2),
    }
