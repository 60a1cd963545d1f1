"""Quotas of spot jobs by forecast demand against first fit without a quota, over several seeds.

The nodes are those of one model of Alibaba's spot trace; the jobs are synthetic, as its table of
jobs is not public in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from benchmarks.parts.schedulers.over_seeds import gain_of, interval, resampled
from benchmarks.parts.schedulers.spot_forecasts import calibration, forecast_losses
from services.admission.core.spot.quota import SpotQuotaSettings
from shared.process.progress import ReportLine
from simulator.spot.jobs import DAY_S, GUARANTEE_HOURS, SPOT_SHARE, SpotDemand, spot_trace
from simulator.spot.nodes import MODEL, NODES, TRACE, read_node_gpus
from simulator.spot.rules import BLOCKING, PASSING, SpotRules, gfs, small_first
from simulator.spot.world import SpotWorld

SOURCE = "Duan et al., GFS, ASPLOS'26"
PUBLISHED = {"eviction_percent": 0.330, "spot_wait_s": 0.441, "allocated_percent": 0.228}
"""Published gains: fewer evictions and shorter waits of spot jobs, means over loads and baselines;
the allocation is that of A800 GPUs in production, and says nothing about this simulation."""
GOALS = ("eviction_percent", "spot_wait_s")
LOADS = {"low": SPOT_SHARE / 2, "medium": SPOT_SHARE, "high": 2 * SPOT_SHARE}
"""GPU time of spot jobs in that of the cluster; published factors of the loads are not known."""
SETTINGS = SpotQuotaSettings()
RULES: Mapping[str, SpotRules] = {
    "first_fit": BLOCKING,
    "first_fit_passing": PASSING,
    "first_fit_quota": replace(PASSING, quota="forecast", settings=SETTINGS),
    "ours": small_first(SETTINGS),
    "gfs": gfs(SETTINGS),
    "no_quota": gfs(SETTINGS, "none"),
    "static": gfs(SETTINGS, "static", feedback=False),
    "last_week": gfs(SETTINGS, "last_week"),
    "no_feedback": gfs(SETTINGS, feedback=False),
    "looser": small_first(SpotQuotaSettings(target_rate=0.3, starving_s=900.0)),
}
BASES = ("first_fit", "first_fit_passing")
COMPARED = (*BASES, "ours")
"""Rules that run at all loads; the others run at the medium one."""
FIRST_SEED = 0
CHOSEN_SEEDS = "100 to 102"
"""Seeds by which order and settings were chosen; they count in no figure."""
DAYS = 9
LEAST = 0.001
"""The unit to which figures are rounded."""


def measure(
    seeds: int = 3,
    report_line: ReportLine = lambda _: None,
    trace: str = TRACE,
    ablations: bool = False,
    days: int = DAYS,
    nodes: int = NODES,
) -> dict[str, Any]:
    """Return the figures of each rule; raises TraceError for an unreadable list of nodes.

    Keys: `settings`, `published`, `ours`: load -> rules -> figure -> `mean`, `low`, `high` (95 % of
    the mean over seeds, bootstrap) and `values`; `gain`: load, or `all` for the mean over
    them -> base -> figure -> how much less than the base, paired by seed (of GPUs allocated: how
    much more); `goals`: whether the gain is
    at least the published one, by load and base; `forecast` and `calibration`.
    """
    node_gpus = read_node_gpus(trace, most=nodes)
    numbers = range(FIRST_SEED, FIRST_SEED + seeds)
    figures: dict[str, dict[str, dict[str, Any]]] = {}
    for load, share in LOADS.items():
        chosen = [name for name in RULES if name in COMPARED or (ablations and load == "medium")]
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in chosen}
        for seed in numbers:
            report_line(f"{load} spot load, seed {seed}: {len(chosen)} rules")
            jobs = spot_trace(SpotDemand(int(node_gpus.sum()), days, seed, spot_load=share))
            for name in chosen:
                world = SpotWorld(jobs, node_gpus, RULES[name], float(days * DAY_S))
                runs[name].append(world.run().figures)
        figures[load] = {name: intervals(own) for name, own in runs.items()}
    gain = gains_of(figures)
    demand = SpotDemand(int(node_gpus.sum()), days, 0)
    return {
        "trace": trace,
        "model": MODEL,
        "nodes": len(node_gpus),
        "gpus": int(node_gpus.sum()),
        "days": days,
        "seeds": seeds,
        "chosen_seeds": CHOSEN_SEEDS,
        "guaranteed_load": demand.guaranteed_load,
        "loads": LOADS,
        "guarantee_hours": list(GUARANTEE_HOURS),
        "settings": asdict(SETTINGS),
        "source": SOURCE,
        "published": PUBLISHED,
        "calibration": calibration(demand, numbers),
        "forecast": forecast_losses(demand, numbers),
        "ours": figures,
        "gain": gain,
        "goals": goals_of(gain),
    }


def intervals(runs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    return {key: interval([run[key] for run in runs]) for key in runs[0]}


def gains_of(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the gains at each load, and in `all` their means, as the published ones are."""
    gain = {load: gains(rows) for load, rows in figures.items()}
    over_all = {base: {key: gain_over_loads(figures, base, key) for key in GOALS} for base in BASES}
    return {"all": over_all, **gain}


def gains(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return how much less ours has than each base; of allocated GPUs how much more."""
    gained: dict[str, Any] = {}
    for base in BASES:
        gained[base] = {key: gain_over(rows[base][key], rows["ours"][key]) for key in GOALS}
        more = gain_over(rows[base]["allocated_percent"], rows["ours"]["allocated_percent"])
        gained[base]["allocated_percent"] = {
            "mean": -more["mean"],
            "low": -more["high"],
            "high": -more["low"],
        }
    return gained


def gain_over(base: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, float]:
    """Return the gain over the base; seeds in which both have nothing, as in a pool that is not
    full, count as no gain where a draw of the bootstrap has them alone.
    """
    first, second = moved(base, ours)
    return gain_of(first, second)


def gain_over_loads(
    figures: Mapping[str, Mapping[str, Any]], base: str, key: str
) -> dict[str, float]:
    """Return the mean over loads of the gains, with the interval of the mean over the seeds."""
    pairs = [moved(rows[base][key], rows["ours"][key]) for rows in figures.values()]
    drawn = [1 - resampled(ours["values"]) / resampled(own["values"]) for own, ours in pairs]
    low, high = np.percentile(np.mean(drawn, 0), (2.5, 97.5))
    mean = float(np.mean([1 - ours["mean"] / own["mean"] for own, ours in pairs]))
    return {"mean": round(mean, 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def moved(base: Mapping[str, Any], ours: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return both figures, with `LEAST` more of each where the base has nothing in some seed."""
    least = LEAST if 0.0 in base["values"] else 0.0
    return [
        {"mean": own["mean"] + least, "values": [value + least for value in own["values"]]}
        for own in (base, ours)
    ]


def goals_of(gain: Mapping[str, Any]) -> dict[str, dict[str, dict[str, bool]]]:
    """Return whether each gain is at least the published one: load -> base -> figure."""
    return {
        load: {
            base: {key: own[key]["mean"] >= PUBLISHED[key] for key in GOALS}
            for base, own in bases.items()
        }
        for load, bases in gain.items()
    }


def losses_below(losses: Mapping[str, Any], others: Sequence[str]) -> bool:
    """Return whether the forecast in use has a smaller pinball loss than each of the others."""
    return all(losses["seasonal"]["mean"] < losses[name]["mean"] for name in others)
