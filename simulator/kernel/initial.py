"""The state in which a run begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from services.priority.core.history import BINS, start
from simulator.kernel import state
from simulator.kernel.codes import (
    CONTEXT_MS,
    EVICTIONS_PER_ROUND,
    GATHERS_PER_ROUND,
    INPUTS,
    MOVERS_MOST,
    NEVER,
    PER_HIDDEN,
)
from simulator.kernel.state import Floats, Ints, Sim
from simulator.kernel.work import Work


def initial_state(
    work: Work, sizes: Ints, rules: Any, counts: Floats, theta: Floats, large: float
) -> Sim:
    """All jobs of `work` fit into the empty nodes; `large` is what rule 12 believes before any."""
    n, m, gpus = len(work), len(sizes), int(sizes.sum())
    most = min(n, gpus)
    levels = np.bincount(sizes).astype(np.int64)
    return Sim(
        rules=rules,
        pool=pool_of(work, large),
        walk=state.table(state.Walk, 1)[0],
        jobs=jobs_of(work),
        kinds=work.shape.copy(),
        queue=np.zeros(n, np.int64),
        line=np.zeros(n, np.int64),
        gone=np.zeros(most, np.int64),
        running=state.table(state.Slot, most),
        ends=state.table(state.End, most),
        shapes=state.table(state.Shape, len(work.dearer)),
        dearer=work.dearer,
        sizes=sizes.astype(np.int64),
        free=sizes.astype(np.int64),
        bits=(1 << sizes.astype(np.int64)) - 1,
        levels=levels,
        off_free=np.zeros(m, np.int64),
        off_levels=np.zeros_like(levels),
        spans=spans_of(gpus),
        placed=state.table(state.Span, m),
        kept=state.table(
            state.Span,
            (EVICTIONS_PER_ROUND + GATHERS_PER_ROUND) * m + GATHERS_PER_ROUND * MOVERS_MOST,
        ),
        victims=state.table(state.Victim, most),
        protected=state.table(state.Protected, most),
        chosen=np.zeros(most, np.int64),
        leaving=np.zeros(most, np.int64),
        evicted=np.zeros(most, np.int64),
        landings=state.table(state.Span, GATHERS_PER_ROUND * MOVERS_MOST),
        homes=state.table(state.Home, m),
        neighbours=np.zeros(most, np.int64),
        sorting=state.table(state.Sorted, n),
        groups=work.groups,
        counts=counts,
        chances=chances_of(n, bool(rules["knows"])),
        outlooks=outlooks_of(n),
        theta=theta,
        hidden=np.zeros(1 + (len(theta) - INPUTS) // PER_HIDDEN),
    )


def pool_of(work: Work, large: float) -> Any:
    """Nothing has happened."""
    pool = state.table(state.Pool, 1)[0]
    pool["clock_ms"] = work.submit_ms[0] if len(work) else 0
    for name in ("first_change_ms", "round_at_ms", "again_at_ms"):
        pool[name] = NEVER
    pool["context_at_ms"] = -CONTEXT_MS
    pool["large"] = large
    return pool


def jobs_of(work: Work) -> Any:
    """[n] records; none has started."""
    jobs = state.table(state.Job, len(work))
    jobs["kind"] = work.shape
    for name in ("tie", "workers", "gpus", "submit_ms", "duration_ms", "walltime_ms"):
        jobs[name] = getattr(work, name)
    jobs["gang"] = work.gang
    jobs["run_s"] = work.walltime_ms / 1000.0
    jobs["seniority"][np.lexsort((work.tie, work.submit_ms))] = np.arange(len(work))
    for name in ("first_start_ms", "ends_ms", "span"):
        jobs[name] = -1
    return jobs


def chances_of(n: int, knows: bool) -> Floats:
    """[n, BINS] to be filled in as jobs come; without history one row: what is believed of all."""
    found = np.zeros((n if knows else 1, BINS))
    if not knows:
        start(found[0])
    return found


def outlooks_of(n: int) -> Any:
    """[n] nobody has looked."""
    outlooks = state.table(state.Outlook, n)
    outlooks["bin"] = -1
    return outlooks


def spans_of(gpus: int) -> Any:
    """[gpus] unused spans in one chain: each span in use has a GPU at least."""
    spans = state.table(state.Span, gpus)
    spans["next"] = np.arange(1, gpus + 1)
    spans["next"][-1:] = -1
    return spans
