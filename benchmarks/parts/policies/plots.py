"""Plots of a comparison of policies, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

from benchmarks.parts.policies.preemption import PreemptionCell

HOUR_S = 3600.0


def draw_replays(path: Path, replays: Sequence[dict[str, Any]]) -> None:
    """Draw the mean wait of each rule, one row per trace."""
    figure, axes = plt.subplots(figsize=(10, 0.6 + 0.9 * len(replays)))
    labels: list[str] = []
    colours: dict[str, str] = {}
    for place, replay in enumerate(replays):
        labels.append(f"{replay['trace']} @ {replay['load']:.2f}")
        for name, value in replay["rules"].items():
            short = "/".join(name.split("/")[:3])
            colour = colours.setdefault(short, f"C{len(colours) % 10}")
            axes.plot(max(value["mean_wait_s"] / HOUR_S, 1e-3), place, "o", color=colour)
    for short, colour in colours.items():
        axes.plot([], [], "o", color=colour, label=short)
    axes.set_xscale("log")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel("mean wait, h (JCT less work)")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, path)


def draw_batches(path: Path, cells: Sequence[dict[str, Any]]) -> None:
    """Draw the gains in mean wait over each blocking base, with intervals."""
    cells = [cell for cell in cells if not cell["protocol"].endswith("contended")]
    chosen = [cell for cell in cells if cell["metric"] == "mean_wait_s"]
    figure, axes = plt.subplots(figsize=(9, 0.6 + 0.25 * len(chosen)))
    for place, cell in enumerate(chosen):
        low, high = cell["gain"] - cell["ci_low"], cell["ci_high"] - cell["gain"]
        axes.errorbar(cell["gain"], place, xerr=[[max(low, 0)], [max(high, 0)]], fmt="o", ms=3)
    labels = [f"{cell['protocol']} {cell['base']}: {cell['policy']}" for cell in chosen]
    axes.set_yticks(range(len(labels)), labels, fontsize=6)
    axes.axvline(0, lw=0.5)
    axes.set_xlabel("gain in mean wait over the base that blocks")
    save(figure, path)


def draw_costs(path: Path, cells: Sequence[PreemptionCell]) -> None:
    """Draw the waits of the first policy by the cost of stops: a panel per share never stopped,
    a line per trace.
    """
    own = [cell for cell in cells if cell.policy == cells[0].policy]
    shares = sorted({cell.fixed_share for cell in own})
    figure, panels = plt.subplots(1, len(shares), figsize=(4 * len(shares), 4), squeeze=False)
    for axes, share in zip(panels[0], shares, strict=True):
        for trace in dict.fromkeys(cell.trace for cell in own):
            line = [cell for cell in own if (cell.trace, cell.fixed_share) == (trace, share)]
            costs = [cell.label for cell in line]
            gains = [cell.wait_vs_best_nonpreemptive for cell in line]
            percent = [math.nan if gain is None else 100 * gain for gain in gains]
            axes.plot(costs, percent, "o-", ms=3, label=trace)
        axes.axhline(0, lw=0.5)
        axes.tick_params(axis="x", labelrotation=45)
        axes.set_title(f"{share:.0%} never stopped")
        axes.set_xlabel("s between checkpoints / of a restart")
    panels[0][0].set_ylabel("mean wait over that without preemption, less 1, %")
    panels[0][-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write the plot without a date, so that the same figures give the same bytes."""
    matplotlib.rcParams["svg.hashsalt"] = "berth"
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
