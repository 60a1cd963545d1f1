"""One simulation by the compiled kernel: a workload, nodes and rules in, an `Outcome` out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from services.priority.core.history import BINS
from simulator.kernel import loop
from simulator.kernel.board import histogram
from simulator.kernel.warm import learnt
from simulator.kernel.weights import untrained
from simulator.kernel.work import Ints, Work
from simulator.metrics.outcome import Outcome

Floats = NDArray[np.float64]
POLICIES = {
    "fcfs": loop.FCFS,
    "smallest_first": loop.SMALLEST,
    "sjf": loop.SJF,
    "saf": loop.SAF,
    "qssf": loop.SAF,
    "f1": loop.F1,
    "wfp3": loop.WFP3,
    "unicep": loop.UNICEP,
    "multifactor": loop.MULTIFACTOR,
    "las": loop.LAS,
    "srtf": loop.SRTF,
    "srsf": loop.SRSF,
    "gittins": loop.GITTINS,
    "learned": loop.LEARNED,
}
MODES = {"strict": loop.STRICT, "skip": loop.SKIP, "easy": loop.EASY}
BY_HISTORY = frozenset({"qssf", "gittins", "learned"})


@dataclass(frozen=True, slots=True)
class Rules:
    """How a pool is run; the names are those of its settings. Times in s."""

    policy: str = "fcfs"
    mode: Literal["strict", "skip", "easy"] = "skip"
    runtime: Literal["oracle", "history"] = "history"
    preemption: bool = False
    min_residency_s: float = 300.0
    preempt_margin: float = 0.0
    large_gang_share: float = 0.25
    """Gangs above this share of the pool are large; where many are, rank stops nobody."""
    large_at_start: float = 1.0
    """Share of large gangs that is believed before any job came: 1 lets rank stop nobody yet."""
    refresh_s: float = 300.0
    restart_s: float = 60.0
    checkpoint_s: float = 60.0
    theta: Floats = field(default_factory=lambda: untrained(0, 0))


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run was, beside its outcome."""

    outcome: Outcome
    rounds: int
    preemptions: int


def simulate(
    work: Work,
    sizes: Ints,
    rules: Rules,
    window_ms: tuple[int, int] | None = None,
    counts: Floats | None = None,
) -> Ran:
    """To the end of the last job. `sizes` [nodes] are GPUs; `counts` what history knows before."""
    window = window_ms or (int(work.submit_ms[0]), int(work.submit_ms[-1]) + 1)
    free = sizes.astype(np.int64).copy()
    history = np.zeros((work.group_count, BINS)) if counts is None else counts.copy()
    first, ends, starts, held, lost, busy, rounds, preemptions = loop.run(
        work.submit_ms, work.duration_ms, work.workers, work.gpus, work.shape, work.dearer,
        work.walltime_ms, work.groups, history, work.tie, free, histogram(sizes),
        MODES[rules.mode], POLICIES[rules.policy],
        rules.policy in BY_HISTORY or rules.runtime == "history", rules.preemption,
        ms(rules.min_residency_s), rules.preempt_margin, rules.large_gang_share, rules.large_at_start,
        ms(rules.refresh_s), ms(rules.restart_s), ms(rules.checkpoint_s), *window, rules.theta,
    )  # fmt: skip
    return Ran(
        Outcome(
            submit_s=work.submit_ms / 1000.0,
            start_s=happened(first),
            end_s=happened(ends),
            duration_s=work.duration_ms / 1000.0,
            gpus=work.gang.astype(np.float64),
            tenant=work.tenant,
            starts=starts,
            held_s=held / 1000.0,
            lost_s=lost / 1000.0,
            fits=ends >= 0,
            capacity_gpus=float(sizes.sum()),
            window_s=(window[0] / 1000.0, window[1] / 1000.0),
            busy_gpu_s=busy / 1000.0,
            horizon_s=float(ends.max()) / 1000.0,
        ),
        rounds,
        preemptions,
    )


def ms(seconds: float) -> int:
    return round(seconds * 1000)


def happened(at_ms: Ints) -> Floats:
    """Seconds; NaN for what never happened."""
    return np.where(at_ms >= 0, at_ms / 1000.0, np.nan)


__all__ = ["MODES", "POLICIES", "Ran", "Rules", "learnt", "simulate"]
