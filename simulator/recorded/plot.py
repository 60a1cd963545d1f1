"""A plot of a what-if: waits and completion with intervals, use, and figures of each tenant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

from simulator.recorded.rows import PolicyRow, TenantRow

TITLES = (
    "mean wait, s",
    "mean completion, s",
    "use, %",
    "mean wait by tenant, s",
    "completion over that alone, by tenant",
    "stops by tenant",
)
MOST_TENANTS = 8
"""Tenants with a colour of their own: those with most jobs."""


def draw(path: Path, rows: Sequence[PolicyRow]) -> None:
    """Draw six panels with a line for each policy."""
    panels: Any
    figure, panels = plt.subplots(1, 6, figsize=(20, 1.2 + 0.4 * len(rows)), sharey=True)
    for place, row in enumerate(rows):
        _mean(panels[0], place, row.mean_wait_s, row.wait_interval)
        _mean(panels[1], place, row.mean_jct_s, row.jct_interval)
        if row.use is not None:
            panels[2].plot(100 * row.use, place, "o", ms=4)
    _by_tenant(panels[3], rows, lambda one: one.mean_wait_s)
    _by_tenant(panels[4], rows, lambda one: one.rho)
    _by_tenant(panels[5], rows, lambda one: float(one.stops))
    panels[0].set_yticks(range(len(rows)), [row.name for row in rows])
    panels[0].invert_yaxis()
    for axes, title in zip(panels, TITLES, strict=True):
        axes.set_xlabel(title)
        axes.set_xlim(left=0)
    panels[5].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    matplotlib.rcParams["svg.hashsalt"] = "berth"
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def _mean(axes: Any, place: int, mean: float, interval: tuple[float, float] | None) -> None:
    low, high = interval or (mean, mean)
    axes.errorbar(mean, place, xerr=[[max(mean - low, 0)], [max(high - mean, 0)]], fmt="o", ms=4)


def _by_tenant(axes: Any, rows: Sequence[PolicyRow], value: Callable[[TenantRow], float]) -> None:
    """Draw a figure of the tenants with most jobs."""
    largest = sorted(rows[0].tenants, key=lambda one: -one.jobs)[:MOST_TENANTS]
    for number, name in enumerate(one.tenant for one in largest):
        own = [
            (value(one), place)
            for place, row in enumerate(rows)
            for one in row.tenants
            if one.tenant == name
        ]
        figures, places = zip(*own, strict=True)
        axes.plot(figures, places, "o", ms=4, color=f"C{number}", label=name)
