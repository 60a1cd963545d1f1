"""Berth's comparison of workers on public traces of real jobs; absent traces give None."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq

from services.failslow.core.measures.peers import Thresholds, judge
from simulator.workload.locate import has_trace, locate

BYTEDANCE, PAI = "bytedance_straggler_AR", "failslow_pai_minibatch"
ROWS_PER_REPORT = 2
"""A row of the second trace is every tenth minibatch; a report of Berth has several iterations."""
BYTEDANCE_SLOW = (0, 0)
"""Stage and data-parallel rank that the published analysis of the first trace names."""
PAI_SLOW: dict[str, frozenset[int]] = {"job_1": frozenset((6,)), "job_3": frozenset((6, 7, 8, 9))}
"""Workers of the second trace that take plainly longer than the others, which count as healthy; it
has no labels of its own."""
HOUR_S = 3600
Windows = dict[int, list[float]]


def real_figures() -> dict[str, Any]:
    bytedance, pai = _bytedance(), _pai()
    return {"bytedance": bytedance, "pai": pai, "healthy": _healthy(bytedance, pai)}


def _healthy(
    bytedance: dict[str, Any] | None, pai: dict[str, dict[str, Any]] | None
) -> dict[str, float] | None:
    """Return the suspicions of healthy workers, and for how long these were watched.

    The times of the second trace have no unit: of its workers iterations count, and no hours.
    """
    if bytedance is None or pai is None:
        return None
    named = {(one["stage"], one["dp_rank"]) for one in bytedance["suspected"]}
    of_pai = [set(own["suspected"]) - PAI_SLOW[job] for job, own in pai.items()]
    workers = sum(own["workers"] - len(PAI_SLOW[job]) for job, own in pai.items())
    iterations = sum(
        own["steps"] * (own["workers"] - len(PAI_SLOW[job])) for job, own in pai.items()
    )
    hours = bytedance["job_s"] / HOUR_S * (bytedance["workers"] - 1)
    alarms = len(named - {BYTEDANCE_SLOW})
    return {
        "worker_hours": round(hours, 1),
        "alarms_in_them": alarms,
        "per_1000_worker_hours": round(1000 * alarms / hours, 1),
        "other_workers": workers,
        "other_worker_iterations": iterations,
        "alarms_of_them": sum(map(len, of_pai)),
    }


def _bytedance() -> dict[str, Any] | None:
    """Return the workers that are slower than the others of their stage, over all steps."""
    if not has_trace(BYTEDANCE):
        return None
    work: dict[int, dict[int, dict[int, float]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(float))
    )
    columns = ["stage", "dp_rank", "step", "optype", "duration", "start_ts"]
    begins: dict[int, float] = {}
    ends: dict[int, float] = {}
    for row in pq.read_table(locate(BYTEDANCE), columns=columns).to_pylist():
        step, start_s = row["step"], row["start_ts"]
        begins[step] = min(start_s, begins.get(step, start_s))
        ends[step] = max(start_s + row["duration"], ends.get(step, start_s))
        if row["optype"].endswith("-compute"):
            work[row["stage"]][row["dp_rank"]][row["step"]] += row["duration"]
    return {
        "workers": sum(len(ranks) for ranks in work.values()),
        "job_s": round(sum(ends[step] - begins[step] for step in begins), 1),
        "suspected": [
            {"stage": stage, "dp_rank": rank, "slowdown": round(slow.slowdown, 2)}
            for stage, ranks in sorted(work.items())
            for rank, slow in judge(_in_order(ranks), Thresholds()).slow.items()
        ],
    }


def _in_order(ranks: Mapping[int, Mapping[int, float]]) -> Windows:
    return {rank: [steps[step] for step in sorted(steps)] for rank, steps in ranks.items()}


def _pai() -> dict[str, dict[str, Any]] | None:
    """Return which workers were suspected and cleared, and at which step first, by job."""
    if not has_trace(PAI):
        return None
    rows: dict[str, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in pq.read_table(locate(PAI)).to_pylist():
        rows[row["job"]][row["time"]][row["worker"]] = float(row["batch_time_norm"])
    return {job: _follow(sorted(steps.items())) for job, steps in sorted(rows.items())}


def _follow(steps: Sequence[tuple[int, Mapping[int, float]]]) -> dict[str, Any]:
    windows: Windows = defaultdict(list)
    suspected: dict[int, int] = {}
    cleared: dict[int, int] = {}
    for first in range(0, len(steps), ROWS_PER_REPORT):
        part = steps[first : first + ROWS_PER_REPORT]
        for worker in part[-1][1]:
            own = sorted(times[worker] for _, times in part if worker in times)
            windows[worker].append(sum(own) / len(own))
        verdict = judge(windows, Thresholds())
        for worker in verdict.slow:
            suspected.setdefault(worker, part[-1][0])
        for worker in verdict.healthy:
            if worker in suspected:
                cleared.setdefault(worker, part[-1][0])
    return {
        "workers": len(windows),
        "steps": steps[-1][0],
        "suspected": suspected,
        "cleared": cleared,
    }
