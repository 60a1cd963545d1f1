"""One episode of RLTune: consecutive jobs on an empty cluster, a decision at a time.

A decision picks one of the first 128 waiting jobs, by the order of the base, FCFS here. A job that
does not fit blocks: time goes on until it does. Features and rules are those of the authors'
`helios_env_base_v2.py`; all GPUs are one pool, as our traces name no virtual cluster.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.parts.rltune.allocation import (
    MAX_NODES,
    MAX_SPLITS,
    NODE_GPUS,
    PAIRS,
    choose_split,
    compiled,
    partly_free,
    tier_splits,
)
from benchmarks.parts.rltune.network import FEATURES, actor_logits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WINDOW = 128
MAX_WAIT_S = 43_200.0
SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()
EDGE = 1e-5
"""Features stay this far inside 0 and 1, as in RLTune."""


class RltuneEpisode(NamedTuple):
    """Start of each job [n], and what each decision saw: jobs in sight, their features, the pick
    and the logarithm of its probability. Rows of `features` follow each other, `counts` [n] of each
    decision.
    """

    start_s: Floats
    counts: Ints
    features: Floats
    picks: Ints
    log_chances: Floats


def run_episode(
    jobs: tuple[Floats, Floats, Ints], nodes: int, actor: Floats, uniforms: Floats
) -> RltuneEpisode:
    """Run jobs given as (submit_s, run_s, gpus), each [n] and by submission.

    `uniforms` [n] in [0, 1) draw the picks; below 0 the base picks, NaN takes the likeliest job.
    """
    return RltuneEpisode(*_run(*jobs, nodes, actor, uniforms))


@compiled
def _write_features(
    seen: Any, now: float, submit_s: Any, gpus: Any, levels: Any, splits: Any, rows: Any
) -> None:
    free_gpus, capacity = 0, levels.sum() * NODE_GPUS
    for free in range(NODE_GPUS + 1):
        free_gpus += levels[free] * free
    needed = 0
    for job in seen:
        needed += gpus[job]
    numbers = np.full(capacity + 1, -1, np.int64)
    broken = partly_free(levels) / levels.sum()
    for at in range(len(seen)):
        own = gpus[seen[at]]
        if numbers[own] < 0:
            first = tier_splits(levels, own, 1, splits)
            number = min(first, 2)
            if tier_splits(levels, own, 2, splits):
                number += 1
            numbers[own] = number if first else -number - 2
        fits = numbers[own] >= 0
        number = numbers[own] if fits else -(numbers[own] + 2)
        future = ((free_gpus - own) - (needed - own) + capacity) / (2.0 * capacity)
        rows[at, 0] = min((now - submit_s[seen[at]]) / MAX_WAIT_S, 1.0 - EDGE)
        rows[at, 1] = min(own / NODE_GPUS, 1.0 - EDGE)
        rows[at, 2] = min(own / max(free_gpus, EDGE) / capacity, 1.0 - EDGE)
        rows[at, 3] = min(max(future, 0.0), 1.0 - EDGE)
        rows[at, 4] = broken
        rows[at, 5] = number / 3.0 if number else EDGE
        rows[at, 6] = EDGE
        if fits:
            rows[at, 6] = (1.5 if number >= 2 else 1.0) * (1.0 - EDGE)


@compiled
def _pick(logits: Any, uniform: float) -> Any:
    """Return the picked slot and the logarithm of its probability."""
    top = logits.max()
    chances = np.exp(logits - top)
    total = chances.sum()
    slot = int(np.argmax(logits))
    if uniform < 0.0:
        slot = 0
    elif not np.isnan(uniform):
        left = uniform * total
        for at in range(len(chances)):
            left -= chances[at]
            if left < 0.0:
                slot = at
                break
    return slot, logits[slot] - top - np.log(total)


@compiled
def _release(end_s: Any, running: Any, now: float, free: Any, held: Any, levels: Any) -> Any:
    """Free the GPUs of the jobs that have ended; return those that still run."""
    for job in running[end_s[running] <= now]:
        for node in range(len(free)):
            levels[free[node]] -= 1
            free[node] += held[job, node]
            levels[free[node]] += 1
            held[job, node] = 0
    return running[end_s[running] > now]


@compiled
def _occupy(split: Any, job: int, free: Any, held: Any, levels: Any) -> None:
    """Take the GPUs of a split, from the first nodes that have as many free."""
    for pair in split:
        own_free, part = PAIRS[pair, 0], PAIRS[pair, 1]
        for node in range(len(free)):
            if free[node] == own_free and held[job, node] == 0:
                free[node] -= part
                held[job, node] = part
                levels[own_free] -= 1
                levels[own_free - part] += 1
                break


def _program(sources: str) -> Any:
    """Return the compiled episode; numba keeps it on disk until `sources` change."""

    @njit(cache=True)
    def run(submit_s: Any, run_s: Any, gpus: Any, nodes: int, actor: Any, uniforms: Any) -> Any:
        _ = sources
        n = len(submit_s)
        start_s, end_s = np.full(n, np.nan), np.full(n, np.inf)
        counts, picks, log_chances = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
        features, filled = np.zeros((n * min(n, WINDOW), FEATURES)), 0
        free, held = np.full(nodes, NODE_GPUS, np.int64), np.zeros((n, nodes), np.int64)
        levels = np.zeros(NODE_GPUS + 1, np.int64)
        levels[NODE_GPUS] = nodes
        splits, chosen = np.zeros((MAX_SPLITS, MAX_NODES), np.int64), np.zeros(MAX_NODES, np.int64)
        queue, running = np.zeros(0, np.int64), np.zeros(0, np.int64)
        now, arrived = submit_s[0], 0
        for decision in range(n):
            if len(queue) == 0:
                now = max(now, submit_s[arrived])
            job, slot, taken = -1, 0, 0
            while taken == 0:
                first = arrived
                arrived = int(np.searchsorted(submit_s, now, side="right"))
                queue = np.append(queue, np.arange(first, arrived))
                running = _release(end_s, running, now, free, held, levels)
                if job < 0:
                    seen = queue[:WINDOW]
                    rows = features[filled : filled + len(seen)]
                    _write_features(seen, now, submit_s, gpus, levels, splits, rows)
                    slot, log_chance = _pick(actor_logits(actor, rows), uniforms[decision])
                    counts[decision], picks[decision] = len(seen), slot
                    log_chances[decision] = log_chance
                    filled += len(seen)
                    job = seen[slot]
                after = 0 if len(queue) == 1 else gpus[queue[1 if slot == 0 else 0]]
                taken = choose_split(levels, gpus[job], after, splits, chosen)
                if taken == 0:
                    now = end_s[running].min()
                    if arrived < n:
                        now = min(now, submit_s[arrived])
            _occupy(chosen[:taken], job, free, held, levels)
            start_s[job], end_s[job] = now, now + run_s[job]
            running = np.append(running, job)
            queue = np.append(queue[:slot], queue[slot + 1 :])
        return start_s, counts, features[:filled].copy(), picks, log_chances

    return run


_run = _program(SOURCES)
