"""Figures of the benchmark of agents, their aims, and the page that shows both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import percentile


class Aim(NamedTuple):
    """The largest value of a figure that is wanted; a dot leads into a nested object."""

    figure: str
    at_most: float
    unit: str


AIMS = (
    Aim("reconnect_s", 10.0, "s"),
    Aim("start_p50_ms", 100.0, "ms"),
    Aim("start_p99_ms", 500.0, "ms"),
    Aim("agent.rss_mib", 60.0, "MiB"),
    Aim("agent.step_rss_mib", 12.0, "MiB"),
)


def judge(figures: Mapping[str, object]) -> list[Json]:
    """Return a row per aim; a figure that was not measured is not met."""
    rows: list[Json] = []
    for aim in AIMS:
        value = find_figure(figures, aim.figure)
        met = isinstance(value, int | float) and value <= aim.at_most
        rows.append(
            {
                "figure": aim.figure,
                "measured": value,
                "at_most": aim.at_most,
                "unit": aim.unit,
                "met": met,
            }
        )
    return rows


def find_figure(figures: Mapping[str, object], path: str) -> object:
    """Return a figure; None if it was not measured."""
    value: object = figures
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def quantiles(name: str, times_ms: Iterable[float]) -> Json:
    """Return p50 and p99 in ms, under names that begin with `name`; None without a time."""
    times = list(times_ms)
    return {
        f"{name}_p{round(100 * share)}_ms": round(percentile(times, share), 1) if times else None
        for share in (0.5, 0.99)
    }


def per_agent_ms(spent_s: Mapping[str, float], agents: int, seconds: float) -> dict[str, float]:
    """Return CPU milliseconds per second and agent, by process."""
    return {
        name: round(1000 * value / (agents * seconds), 4) for name, value in sorted(spent_s.items())
    }


def render_page(result: Mapping[str, object], rows: list[Json]) -> str:
    """Return the page for docs/results."""
    lines = [
        "# Agents of nodes against one control plane",
        "",
        f"By `berth bench agents --agents {result['agents']}` on {result['cores']} cores "
        f"({result['broker']} broker, {result['clients']} processes of simulated agents).",
        "",
        "| figure | measured | aim | |",
        "|---|---|---|---|",
        *(
            f"| `{row['figure']}` | {row['measured']} {row['unit']} | at most {row['at_most']:g} "
            f"{row['unit']} | {'met' if row['met'] else 'not met'} |"
            for row in rows
        ),
        "",
        "Further figures are in `agents.json`.",
    ]
    return "\n".join(lines) + "\n"
