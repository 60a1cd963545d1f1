"""The goals of the comparison of policies, computed from its replays and cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import geometric_mean
from typing import Any

from benchmarks.parts.goals import met
from benchmarks.parts.policies.cells import Cell
from benchmarks.parts.policies.rules import GITTINS, LEARNED

CONTENDED, OVERLOAD = 0.85, 1.05
"""Loads from which a pool is contended, and from which it cannot run all that is submitted."""
OVER_BLOCKING, OVER_BLOCKING_MOST = 0.65, 0.9
QUEUED = ("helios_venus", "philly", "msft_itp")
"""Traces whose queues come from load alone: arrivals of PAI are shaped by its real queue."""
PAI = "alibaba_pai_2020"
GAP, GAP_OVERLOAD = 0.8, 0.7
USE_LOSS = 0.02
SHORTER_WITHOUT_PREEMPTION = {"philly": 0.65, "msft_itp": 0.5}
WORSE_WITHOUT_PREEMPTION = 0.03
EARNED = 0.1
RLTUNE_OVER_FCFS = {"mean_wait_s": 0.92, "mean_jct_s": 0.7, "utilisation": 0.13}
BATCHES = "batches-256-from-empty"

Figures = dict[str, Any]
"""Figures of a replay or of a rule, as the JSON has them."""
Measured = tuple[str, float]
"""Where a figure was measured, and the figure: higher is better."""


def goals_of(replays: Sequence[Figures], cells: Sequence[Cell]) -> dict[str, str]:
    """Return `met`, `not met` or `not measured`, with the worst figure, per goal."""
    contended = [replay for replay in replays if replay["load"] >= CONTENDED]
    return {
        "wait at least 65 % below FCFS that blocks, on every trace": at_least(
            measured(contended, over("fcfs/blind/strict/")), OVER_BLOCKING
        ),
        "and at least 90 % below it on Venus, Philly and PAI": at_least(
            measured(
                [replay for replay in contended if replay["trace"] in (*QUEUED[:2], PAI)],
                over("fcfs/blind/strict/"),
            ),
            OVER_BLOCKING_MOST,
        ),
        "at least 80 % of the gap to the oracle closed on Venus, Philly and ITP below load 1": (
            at_least(measured([r for r in contended if r["load"] < OVERLOAD], gap_closed), GAP)
        ),
        "and at least 70 % of it at load 1.1": at_least(
            measured([r for r in contended if r["load"] >= OVERLOAD], gap_closed), GAP_OVERLOAD
        ),
        "p99 of waits at most that of EASY with true run times, everywhere": at_least(
            measured(contended, tail_gain), 0.0
        ),
        "use at most 2 % below FCFS that skips, everywhere": at_least(
            measured(contended, use_gain), -USE_LOSS
        ),
        "without preemption, wait 65 % below FCFS that skips on Philly": goal_without_preemption(
            contended, "philly"
        ),
        "without preemption, wait 50 % below FCFS that skips on ITP": goal_without_preemption(
            contended, "msft_itp"
        ),
        "without preemption, nowhere more than 3 % above FCFS that skips": at_least(
            measured(contended, gain_without_preemption), -WORSE_WITHOUT_PREEMPTION
        ),
        "the network waits 10 % less than Gittins, geometric mean of all replays": earned(replays),
        "over FCFS in RLTune's batches: wait -92 %, JCT -70 %, use +13 %": over_fcfs(cells),
    }


def measured(
    replays: Iterable[Figures], figure: Callable[[Figures], float | None]
) -> list[Measured]:
    """Return the figure of each replay that has it."""
    figures = [(f"{replay['trace']} at {replay['load']:.2f}", figure(replay)) for replay in replays]
    return [(where, value) for where, value in figures if value is not None]


def at_least(values: Sequence[Measured], least: float) -> str:
    """Return the verdict on the smallest figure, and where it is."""
    if not values:
        return "not measured"
    where, worst = min(values, key=lambda value: value[1])
    return f"{met(worst >= least)}: {worst:+.1%} ({where})"


def over(start: str) -> Callable[[Figures], float | None]:
    """Return by how much a replay's policy waits less than the rule whose key begins so."""

    def gain(replay: Figures) -> float | None:
        base = rule(replay, start)
        return less(replay["mean_wait_s"], base["mean_wait_s"]) if base else None

    return gain


def rule(replay: Figures, start: str) -> Figures | None:
    """Return the figures of the rule whose key begins so."""
    rules: dict[str, Figures] = replay["rules"]
    return next((figures for name, figures in rules.items() if name.startswith(start)), None)


def less(ours: float, base: float) -> float | None:
    return 1.0 - ours / base if base > 0 else None


def gap_closed(replay: Figures) -> float | None:
    closed: float | None = replay["gap_closed_skip_fcfs_to_srsf_oracle"]
    return closed if replay["trace"] in QUEUED else None


def tail_gain(replay: Figures) -> float | None:
    return less(replay["p99_wait_s"], replay["p99_wait_s_easy_fcfs_true"])


def use_gain(replay: Figures) -> float:
    return float(replay["utilisation"] / replay["utilisation_skip_fcfs"] - 1.0)


def gain_without_preemption(replay: Figures) -> float | None:
    """Return by how much the policy waits less that validation chose among those without
    preemption."""
    own, skip = rule(replay, replay["without_preemption"]), rule(replay, "fcfs/blind/skip/")
    return less(own["mean_wait_s"], skip["mean_wait_s"]) if own and skip else None


def goal_without_preemption(replays: Sequence[Figures], trace: str) -> str:
    return at_least(
        measured([r for r in replays if r["trace"] == trace], gain_without_preemption),
        SHORTER_WITHOUT_PREEMPTION[trace],
    )


def earned(replays: Sequence[Figures]) -> str:
    """Return the verdict on the waits under the network over those under Gittins."""
    ratios = []
    for replay in replays:
        network, gittins = rule(replay, LEARNED), rule(replay, f"{GITTINS.name}/")
        if network and gittins and min(network["mean_wait_s"], gittins["mean_wait_s"]) > 0:
            ratios.append(network["mean_wait_s"] / gittins["mean_wait_s"])
    if not ratios:
        return "not measured"
    mean = geometric_mean(ratios)
    return f"{met(mean <= 1.0 - EARNED)}: {mean - 1.0:+.1%}"


def gains_over_fcfs(cells: Sequence[Cell], policy: str) -> dict[str, float]:
    """Return the gains of a policy in RLTune's protocol, by metric."""
    return {
        cell.metric: cell.gain
        for cell in cells
        if (cell.protocol, cell.base, cell.policy) == (BATCHES, "fcfs", policy)
    }


def over_fcfs(cells: Sequence[Cell]) -> str:
    """Return the verdict on the shipped policy's gains in RLTune's protocol."""
    gains = gains_over_fcfs(cells, GITTINS.name)
    if not gains.keys() >= RLTUNE_OVER_FCFS.keys():
        return "not measured"
    holds = all(gains[metric] >= least for metric, least in RLTUNE_OVER_FCFS.items())
    return f"{met(holds)}: {' / '.join(f'{gains[metric]:+.0%}' for metric in RLTUNE_OVER_FCFS)}"
