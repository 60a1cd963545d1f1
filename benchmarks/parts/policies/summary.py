"""Figures of an evaluated trace: gains over each base, and what each rule reached."""

from __future__ import annotations

import numpy as np

from benchmarks.parts.command import Json
from benchmarks.parts.policies import continuous
from benchmarks.parts.policies.cells import Cell, compare
from benchmarks.parts.policies.replays import EvaluatedTrace, key
from benchmarks.parts.policies.rules import (
    EASY_FCFS,
    EASY_PREDICTED,
    MULTIFACTOR,
    QSSF,
    SKIP_FCFS,
    SMALLEST,
    SRSF_ORACLE,
    STRICT_FCFS,
)
from simulator.metrics.outcome import ScheduleOutcome

CELL_BASES = (SKIP_FCFS, EASY_FCFS, EASY_PREDICTED, SMALLEST, MULTIFACTOR, QSSF, STRICT_FCFS)


def continuous_cells(trace: EvaluatedTrace) -> list[Cell]:
    """Return the cells of the chosen policy over each base that was run."""
    ours = trace.side(trace.ours)
    cells: list[Cell] = []
    for base in CELL_BASES:
        if key(base) not in trace.outcomes:
            continue
        fields: Json = {
            "trace": trace.name,
            "protocol": "continuous",
            "load": round(trace.offered_load, 3),
            "mode": base.rules.queue_mode,
            "base": base.name,
            "runtime_source": base.runtime_source,
            "policy": trace.ours.name,
        }
        cells += compare(trace.side(base), ours, fields)
    return cells


def best(trace: EvaluatedTrace) -> Json:
    """Return figures of the chosen policy; gains are positive where it is better."""
    ours, base = trace.side(trace.ours), trace.side(SKIP_FCFS)
    bound, easy = trace.side(SRSF_ORACLE), trace.side(EASY_FCFS)
    simple = min(float(trace.side(named).delay_s.mean()) for named in (SKIP_FCFS, SMALLEST))
    wait, skip_wait = float(ours.delay_s.mean()), float(base.delay_s.mean())
    oracle_wait = float(bound.delay_s.mean())
    headroom = skip_wait - oracle_wait
    return {
        "policy": trace.ours.name,
        "trace": trace.name,
        "nodes": [len(replay.sizes) for replay in trace.replays],
        "load": round(trace.offered_load, 4),
        "jobs": len(ours.jct_s),
        "mean_jct_s": round(float(ours.jct_s.mean()), 1),
        "mean_jct_gain_vs_skip_fcfs": round(1 - ours.jct_s.mean() / base.jct_s.mean(), 4),
        "mean_jct_over_srsf_oracle": round(float(ours.jct_s.mean() / bound.jct_s.mean()), 4),
        "mean_jct_gain_vs_easy_fcfs_true": round(1 - ours.jct_s.mean() / easy.jct_s.mean(), 4),
        "mean_wait_s": round(wait, 1),
        "mean_wait_gain_vs_skip_fcfs": round(1 - wait / skip_wait, 4) if skip_wait else 0.0,
        "mean_wait_gain_vs_easy_fcfs_true": round(1 - wait / float(easy.delay_s.mean()), 4)
        if easy.delay_s.mean()
        else 0.0,
        "gap_closed_skip_fcfs_to_srsf_oracle": round((skip_wait - wait) / headroom, 4)
        if headroom > 0
        else None,
        "mean_wait_over_best_without_preemption": round(wait / simple, 4) if simple else None,
        "p99_wait_s": round(float(np.quantile(ours.delay_s, 0.99)), 1),
        "p99_wait_s_easy_fcfs_true": round(float(np.quantile(easy.delay_s, 0.99)), 1),
        "utilisation": round(continuous.utilisation_of(trace.outcomes[key(trace.ours)]), 4),
        "productive_utilisation": round(float(ours.productive.mean()), 4),
        **costs(trace.outcomes[key(trace.ours)]),
        "utilisation_skip_fcfs": round(
            continuous.utilisation_of(trace.outcomes[key(SKIP_FCFS)]), 4
        ),
    }


def describe(trace: EvaluatedTrace) -> Json:
    """Return `best`, and the figures of every training seed and every rule."""
    return {
        **best(trace),
        "without_preemption": key(trace.without_preemption),
        "training_seeds": {
            "mean_wait_s": {
                name: round(float(jobs.delay_s.mean()), 1) for name, jobs in trace.seeds.items()
            },
            "utilisation": {
                name: round(float(jobs.use.mean()), 4) for name, jobs in trace.seeds.items()
            },
            "worst_gap_closed": worst_gap(trace),
        },
        "carried": {
            name: {"into_window": round(low, 4), "out_of_window": round(high, 4)}
            for name, (low, high) in trace.carried.items()
        },
        "rules": {name: rule_figures(outcomes) for name, outcomes in trace.outcomes.items()},
    }


def rule_figures(outcomes: list[ScheduleOutcome]) -> Json:
    side = continuous.side_of(outcomes)
    return {
        "mean_wait_s": round(float(side.delay_s.mean()), 1),
        "mean_jct_s": round(float(side.jct_s.mean()), 1),
        "p99_wait_s": round(float(np.quantile(side.delay_s, 0.99)), 1),
        "all_jobs_mean_wait_s": round(all_jobs_mean_wait_s(outcomes), 1),
        "utilisation": round(continuous.utilisation_of(outcomes), 4),
        "productive_utilisation": round(float(side.productive.mean()), 4),
        **costs(outcomes),
        "unfinished_or_never_fit": sum(int((~outcome.ended).sum()) for outcome in outcomes),
    }


def costs(outcomes: list[ScheduleOutcome]) -> Json:
    lost_share, max_starts = continuous.preemption_costs(outcomes)
    return {"lost_share": round(lost_share, 5), "max_starts": max_starts}


def worst_gap(trace: EvaluatedTrace) -> float | None:
    """Return the share of the gap from skip-FCFS to the oracle that the worst seed closes."""
    base = float(trace.side(SKIP_FCFS).delay_s.mean())
    headroom = base - float(trace.side(SRSF_ORACLE).delay_s.mean())
    if not trace.seeds or headroom <= 0:
        return None
    worst = max(float(jobs.delay_s.mean()) for jobs in trace.seeds.values())
    return round((base - worst) / headroom, 4)


def all_jobs_mean_wait_s(outcomes: list[ScheduleOutcome]) -> float:
    """Return the mean over all jobs of the trace, which shows starvation before the window."""
    delays = np.concatenate([(o.jct_s - o.duration_s)[o.fits] for o in outcomes])
    return float(delays.mean())
