"""Files of other tools about the ranks of a training, as an iteration of the worker. Pure.

JSON alone is read: a pickle, also of plain values, can make its reader take any amount of memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from berth_agent.core.iteration_rows import IterationRow, IterationRows
from berth_agent.messages import Iterations

SCORES, SECTIONS = "gpu_relative_perf_scores", "section_relative_perf_scores"
ENTRIES = "entries"
LEAST_SCORE = 1e-3
NS = 1e9
LEAST_COLLECTIVES = 2
LEAST_OWN_S = 1e-6
"""Less is no time of work: a score may be infinite."""


def row_of(data: bytes, rank: int, step: int) -> IterationRow:
    """Return what a file says of this rank, as iteration `step`. Raises ValueError."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("not an object; a report of NVRx or a dump of the flight recorder is read")
    try:
        if SCORES in document or SECTIONS in document:
            row = _of_scores(document, rank, step)
        else:
            row = _of_collectives(document, step)
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"not of the form of its tool: {error!r}") from None
    if row.own_s is None or row.own_s < LEAST_OWN_S:
        raise ValueError(f"own work of {row.own_s} s; {LEAST_OWN_S} s is the least")
    Iterations.from_json(IterationRows([row]).message("read", rank, rank).to_json())
    return row


def _of_scores(document: Mapping[str, Any], rank: int, step: int) -> IterationRow:
    """Return the times that relative scores stand for: the fastest rank takes 1 s.

    Without scores of GPUs the worst section of each rank counts.
    """
    worst: dict[int, float] = {}
    of_gpus = document.get(SCORES)
    for scores in (of_gpus,) if of_gpus else document[SECTIONS].values():
        for name, value in scores.items():
            score = float(value)
            if not math.isnan(score):
                worst[int(name)] = min(score, worst.get(int(name), score))
    if rank not in worst:
        raise ValueError(f"no score of rank {rank}")
    own_s, slowest_s = (1 / max(score, LEAST_SCORE) for score in (worst[rank], min(worst.values())))
    return IterationRow(step, slowest_s, own_s, slowest_s - own_s)


def _of_collectives(document: Mapping[str, Any], step: int) -> IterationRow:
    """Return the mean times of a collective: own work is that between collectives."""
    times = sorted(
        (int(entry["time_created_ns"]), int(entry["time_discovered_completed_ns"]))
        for entry in document[ENTRIES]
        if not entry.get("is_p2p") and entry.get("time_discovered_completed_ns") is not None
    )
    if len(times) < LEAST_COLLECTIVES:
        raise ValueError(f"{len(times)} complete collectives; {LEAST_COLLECTIVES} are the least")
    own_ns, ended_ns = 0, times[0][1]
    for created_ns, completed_ns in times[1:]:
        own_ns += max(0, created_ns - ended_ns)
        ended_ns = max(ended_ns, completed_ns)
    count = len(times) - 1
    own_s, whole_s = own_ns / NS / count, (ended_ns - times[0][1]) / NS / count
    if not 0 < own_s <= whole_s:
        raise ValueError("no time between collectives")
    return IterationRow(step, whole_s, own_s, whole_s - own_s)
