"""Measurements of the goals of chaos runs, and the functions that several goals share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures in a sentence, whether they meet the goal, and what the run did not exercise.

    `by` is the command, where the source of the goal does not say it.
    """

    summary: str
    is_met: bool
    left_out: str = ""
    by: str = ""


Measured = Callable[[Figures, Figures], Measurement | None]
"""(results, results of fuzzing) -> a measurement, None where nothing was measured."""


def part(result: Figures, name: str) -> Figures:
    """Return the figures of a part, empty if it was not run; `ended` is the verdict of its run."""
    figures = result["parts"].get(name, {})
    if "skipped" in figures:
        return {}
    run = result["runs"].get(figures.get("run"), {})
    return {**figures, "ended": run.get("end"), "load": run.get("load_1m")} if figures else {}


def measured_by(name: str) -> Callable[[Callable[[Figures], Measurement | None]], Measured]:
    """Turn a measurement of the figures of the part `name` into one of all results."""

    def decorate(measure: Callable[[Figures], Measurement | None]) -> Measured:
        @wraps(measure)
        def measurement(result: Figures, _: Figures) -> Measurement | None:
            figures = part(result, name)
            return measure(figures) if figures else None

        return measurement

    return decorate


def verdict(figures: Figures) -> str:
    """Return how many jobs the run of a part lost, and what `verify` says of it."""
    end = figures["ended"]
    if end is None:
        return "cut short before the final check"
    lost = end["jobs_acknowledged"] - end["jobs_ended"]
    return (
        f"{end['jobs_acknowledged']} jobs acknowledged, {lost} without an end, "
        f"verify **{end['verify']}** ({len(end['violations'])} violations)"
    )


def lost_nothing(figures: Figures) -> bool:
    """Return whether each job of the run has ended, and `verify` found no violation."""
    end = figures["ended"]
    return bool(
        end
        and end["jobs_acknowledged"] == end["jobs_ended"]
        and end["verify"] == "ok"
        and not end["violations"]
    )


def spread(times: Figures) -> str:
    return f"p50 {times['p50']} s, p99 {times['p99']} s, max {times['max']} s of {times['count']}"


def shortfall(count: float, whole: float, of: str) -> str:
    """Return how much of what the goal names was exercised, empty if all of it."""
    return "" if count >= whole else f"{_number(count)} of {_number(whole)} {of}"


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if figure == int(figure) else f"{figure:,g}"


def together(*shortfalls: str) -> str:
    return "; ".join(filter(None, shortfalls))
