"""GPUs that stay unallocated in a full cluster, by policy, on the trace of FGD's evaluation.

Two clusters: the 1,213 nodes with GPUs, on which FGD's authors ran theirs, and all 1,523 nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.parts.schedulers.over_seeds import gain_of, interval
from services.placement.core.gpu_parts.demand import Demand
from services.placement.core.gpu_parts.nodes import NodeTable
from services.placement.core.gpu_parts.placer import Placer, RandomPlacer, ScoredPlacer
from services.placement.core.gpu_parts.scores import (
    BestFit,
    DotProduct,
    FragmentationDescent,
    LargestNode,
    Score,
    first_fit,
    gpu_clustering,
    gpu_packing,
)
from shared.contracts.gang_needs import GPU, NodeKind, Shape
from shared.process.progress import ReportLine
from simulator.gpu_parts.inflation import arrivals, inflate
from simulator.gpu_parts.openb import read_kinds, read_workers, with_multi, with_share

TRACE, NODES = "alibaba_gpu_2023", "alibaba_gpu_2023_nodes"
SAMPLES = (100, 130)
"""GPUs requested, in percent of the cluster, at which figures are compared."""
SOURCE = "Weng et al., USENIX ATC '23; means and deviations of ten seeds of the released results"
PUBLISHED: dict[str, dict[str, dict[int, tuple[float, float]]]] = {
    "default": {
        "random": {100: (13.70, 0.33), 130: (12.53, 0.32)},
        "dot_product": {100: (9.38, 0.19), 130: (9.15, 0.20)},
        "gpu_clustering": {100: (8.35, 0.61), 130: (8.12, 0.62)},
        "gpu_packing": {100: (8.22, 0.53), 130: (8.00, 0.54)},
        "best_fit": {100: (7.14, 0.14), 130: (6.92, 0.13)},
        "fgd": {100: (4.77, 0.11), 130: (4.61, 0.08)},
    },
    "gpushare40": {
        "best_fit": {100: (8.56, 0.20), 130: (8.31, 0.21)},
        "fgd": {100: (6.04, 0.07), 130: (5.85, 0.07)},
    },
    "gpushare100": {
        "best_fit": {100: (15.38, 0.22), 130: (14.99, 0.20)},
        "fgd": {100: (13.36, 0.16), 130: (13.10, 0.15)},
    },
    "multigpu20": {
        "best_fit": {100: (6.27, 0.25), 130: (6.07, 0.23)},
        "fgd": {100: (4.47, 0.16), 130: (4.35, 0.16)},
    },
    "multigpu50": {
        "best_fit": {100: (4.38, 0.18), 130: (4.26, 0.19)},
        "fgd": {100: (2.91, 0.11), 130: (2.82, 0.10)},
    },
}
"""Unallocated GPUs, percent: mean and standard deviation over the seeds."""
VARIANTS: dict[str, Callable[[Sequence[Shape]], Sequence[Shape]]] = {
    "default": lambda shapes: shapes,
    "gpushare40": lambda shapes: with_share(shapes, 40),
    "gpushare100": lambda shapes: with_share(shapes, 100),
    "multigpu20": lambda shapes: with_multi(shapes, 20),
    "multigpu50": lambda shapes: with_multi(shapes, 50),
}
"""Demands after the published ones of the same names, which are other draws."""
POLICIES = (
    *("random", "first_fit", "dot_product", "gpu_clustering", "gpu_packing", "best_fit"),
    *("fgd_exact", "fgd"),
)
COMPARED = ("best_fit", "fgd")
LEAST_GAIN = 0.20
FIRST_SEED = 2
"""Seeds 0 and 1 chose the band of `FragmentationDescent`, and count in no figure."""
CHOSEN_PERCENT = 4.61
"""GPUs unallocated by these two at 100 % requested, 2026-11-27; to measure it again:
`berth bench fragmentation --seeds 2 --first-seed 0`."""


def measure(
    seeds: int = 5,
    report_line: ReportLine = lambda _: None,
    trace: str = TRACE,
    nodes: str = NODES,
    variants: Sequence[str] = ("default",),
    first_seed: int = FIRST_SEED,
) -> dict[str, Any]:
    """Return the unallocated GPUs of each policy; raises TraceError for an unreadable trace.

    Keys: `trace`, `seeds`, `source`; `clusters`: name -> `nodes`, `gpus`; `published`: variant ->
    policy -> percent requested -> [mean, deviation]; `ours`: cluster -> variant -> policy ->
    percent requested -> `mean`, `low`, `high` (95 % of the mean over seeds, bootstrap) and
    `values`; `gain`: cluster -> percent requested -> `mean`, `low`, `high` of 1 - FGD / best fit,
    paired by seed; `goals`: name -> whether it is met.
    """
    shapes, kinds = read_workers(trace), read_kinds(nodes)
    clusters = {"gpu_nodes": [kind for kind in kinds if kind.gpus], "all_nodes": kinds}
    ours: dict[str, dict[str, Any]] = {name: {} for name in clusters}
    numbers = range(first_seed, first_seed + seeds)
    for variant in variants:
        policies = POLICIES if variant == "default" else COMPARED
        demand = VARIANTS[variant](shapes)
        for cluster, members in clusters.items():
            if variant == "default" or cluster == "gpu_nodes":
                report_line(f"{variant}, {cluster}: {len(members):,} nodes, {seeds} seeds")
                ours[cluster][variant] = compare(demand, members, policies, numbers)
    gain = {
        cluster: {
            str(at): gain_of(rows["default"]["best_fit"][str(at)], rows["default"]["fgd"][str(at)])
            for at in SAMPLES
        }
        for cluster, rows in ours.items()
    }
    return {
        "trace": trace,
        "seeds": seeds,
        "source": SOURCE,
        "workers": len(shapes),
        "clusters": {
            name: {"nodes": len(members), "gpus": sum(kind.gpus for kind in members)}
            for name, members in clusters.items()
        },
        "published": {name: PUBLISHED[name] for name in variants},
        "ours": ours,
        "gain": gain,
        "goals": goals_of(ours, gain),
    }


def compare(
    shapes: Sequence[Shape], kinds: Sequence[NodeKind], policies: Sequence[str], seeds: range
) -> dict[str, Any]:
    """Return the figures of each policy; all see the same arrivals of a seed."""
    gpu_milli = sum(kind.gpus for kind in kinds) * GPU
    orders = {seed: arrivals(shapes, gpu_milli, seed) for seed in seeds}
    placers = placers_of(Demand.of(shapes), LargestNode.of(NodeTable.of(kinds)))
    rows: dict[str, Any] = {}
    for policy in policies:
        runs = [
            inflate(kinds, order, placers[policy](seed), SAMPLES) for seed, order in orders.items()
        ]
        values = {at: [run.unallocated_percent[at] for run in runs] for at in SAMPLES}
        rows[policy] = {str(at): interval(values[at]) for at in SAMPLES}
    return rows


def placers_of(demand: Demand, largest: LargestNode) -> dict[str, Callable[[int], Placer]]:
    """Return a maker of each policy's placer, by seed."""
    scores: dict[str, Score] = {
        "first_fit": first_fit,
        "dot_product": DotProduct(largest),
        "gpu_clustering": gpu_clustering,
        "gpu_packing": gpu_packing,
        "best_fit": BestFit(largest),
        "fgd_exact": FragmentationDescent(demand, largest, band_milli=0),
        "fgd": FragmentationDescent(demand, largest),
    }
    at_random: dict[str, Callable[[int], Placer]] = {"random": RandomPlacer}
    return at_random | {name: scored(score) for name, score in scores.items()}


def scored(score: Score) -> Callable[[int], Placer]:
    return lambda seed: ScoredPlacer(score)


def goals_of(ours: dict[str, dict[str, Any]], gain: dict[str, Any]) -> dict[str, bool]:
    """Return whether each goal is met, by means, at all samples."""
    published = PUBLISHED["default"]["fgd"]
    goals: dict[str, bool] = {}
    for cluster, rows in ours.items():
        fgd = rows["default"]["fgd"]
        goals[f"{cluster}_at_most_fgd_published"] = all(
            fgd[str(at)]["mean"] <= published[at][0] for at in SAMPLES
        )
        goals[f"{cluster}_20_percent_below_best_fit"] = all(
            gain[cluster][str(at)]["mean"] >= LEAST_GAIN for at in SAMPLES
        )
    return goals
