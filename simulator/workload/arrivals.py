"""Arrivals of a Poisson process whose rate follows the hour of the day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

_HOUR_S = 3600.0
START_S = 9 * _HOUR_S
"""The hour of the first day at which a workload begins."""


def arrivals_s(
    draw: Callable[[], float], hours: Sequence[float], mean_gap_s: float
) -> Iterator[float]:
    """Yield arrivals from `START_S` on, in s since midnight; `hours` are multiples of the rate.

    A gap uses up one exponential draw, of mean 1, of expected arrivals.
    """
    clock_s = START_S
    while True:
        left = draw()
        while True:
            rate_per_s = hours[int(clock_s // _HOUR_S) % 24] / mean_gap_s
            hour_end_s = (clock_s // _HOUR_S + 1) * _HOUR_S
            if left <= (hour_end_s - clock_s) * rate_per_s:
                break
            left -= (hour_end_s - clock_s) * rate_per_s
            clock_s = hour_end_s
        clock_s += left / rate_per_s
        yield clock_s
