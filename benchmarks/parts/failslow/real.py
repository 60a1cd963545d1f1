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
Windows = dict[int, list[float]]


def real_figures() -> dict[str, Any]:
    return {"bytedance": _bytedance(), "pai": _pai()}


def _bytedance() -> dict[str, Any] | None:
    """Return the workers that are slower than the others of their stage, over all steps."""
    if not has_trace(BYTEDANCE):
        return None
    work: dict[int, dict[int, dict[int, float]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(float))
    )
    columns = ["stage", "dp_rank", "step", "optype", "duration"]
    for row in pq.read_table(locate(BYTEDANCE), columns=columns).to_pylist():
        if row["optype"].endswith("-compute"):
            work[row["stage"]][row["dp_rank"]][row["step"]] += row["duration"]
    return {
        "workers": sum(len(ranks) for ranks in work.values()),
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
    return {"suspected": suspected, "cleared": cleared}
