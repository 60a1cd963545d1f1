"""Labelled synthetic jobs: the suite on which detectors of slow jobs are tuned and compared.

Every parameter of the generator is a constant of this file. A job is drawn from its suite's name,
the jitter and a seed, so it can be drawn again. Thresholds were chosen on the seeds 0 to 199;
results are reported on the seeds `REPORTED`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator.failslow.series import Bools, Floats, Label, Series

REPORTED = range(1000, 1100)
JITTERS = (1, 2, 4, 8)
"""Standard deviation of the iteration time, %."""
JOBS_PER_SEED = 3

BASE_S = (0.05, 60.0)
"""Seconds of an iteration, log-uniform over jobs."""
LENGTH = (700, 1600)
"""Iterations of a job."""
SPIKES = (0.0, 0.02)
"""Share of iterations that are isolated spikes, by job."""
SPIKE_SIZE = (0.2, 3.0)
DRIFTING = 0.5
"""Share of jobs with a drift."""
DRIFT = (-0.05, 0.12)
"""Change of the iteration time from the first to the last iteration."""
WAVE = (0.0, 0.015)
"""Amplitude of a slow wave on top of the drift; its period is the job's length."""
ELASTIC = 0.35
"""Share of jobs that change their batch, in steps."""
BATCHES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
"""Batches relative to the first one."""
BATCH_STEPS = (1, 4)
OVERHEAD = (0.0, 0.25)
"""Part of an iteration that does not depend on the batch."""
TOKEN_NOISE = (0.0, 0.08)
"""Standard deviation of the tokens of an iteration, by job, in `NOISY_TOKENS` of the jobs."""
NOISY_TOKENS = 0.4
EVALUATING = 0.6
EVALUATE_EVERY = (50, 300)
EVALUATE_LENGTH = (1, 8)
EVALUATE_FACTOR = (0.4, 5.0)
CHECKPOINTING = 0.6
CHECKPOINT_EVERY = (60, 400)
CHECKPOINT_FACTOR = (1.5, 12.0)
UNNAMED = 0.25
"""Share of jobs that do not name their evaluations and checkpoints."""
UNNAMED_LENGTH = 4
"""Most iterations of an evaluation that is not named."""
WARM_UP = 0.5
WARM_UP_LENGTH = (3, 16)
WARM_UP_FACTOR = (0.3, 3.0)
TAILS = ("normal", "lognormal", "gamma", "student", "correlated")
"""Shapes of the jitter, all with the same standard deviation."""
CORRELATION = 0.3
FAULTS = (0.4, 0.35, 0.17, 0.08)
"""Shares of jobs with 0, 1, 2 and 3 slowdowns."""
SLOWDOWN = (0.08, 0.80)
DURATION = (20, 500)
"""Iterations of a slowdown, log-uniform; its size is uniform."""
RAMP = (2, 15)
RAMPING = 0.2
"""Share of slowdowns that begin gradually, over these iterations but at most a third of all."""
FROM_START = 0.05
"""Share of faulty jobs with a slowdown from the first iteration to one from the 30th on."""
TO_END = 0.15
"""Share of faulty jobs with a slowdown that lasts to the end of the job."""
FIRST_FAULT = 50
"""Earliest onset of another slowdown, and the least gap between two."""

FALCON_LENGTH = 1200
FALCON_SPIKES = 0.01
FALCON_SPIKE_SIZE = (0.30, 2.00)
FALCON_DRIFTING = 0.5
FALCON_DRIFT = (0.02, 0.08)
FALCON_FAULTY = 0.6
FALCON_SLOWDOWN = (0.12, 0.80)
FALCON_DURATION = (30, 500)


@dataclass(slots=True)
class Draft:
    """A job under construction; `factor` multiplies the time of each iteration."""

    factor: Floats
    tokens: Floats
    masked: Bools
    labels: list[Label]


def draw_suite(jitter: int, seeds: range, jobs: int = JOBS_PER_SEED) -> Iterator[Series]:
    """Yield the jobs of the suite at this jitter."""
    for seed in seeds:
        for index in range(jobs):
            yield draw_job(jitter, seed, index)


def draw_job(jitter: int, seed: int, index: int) -> Series:
    rng = np.random.default_rng([1, jitter, seed, index])
    length = int(rng.integers(*LENGTH))
    draft = Draft(np.ones(length), np.ones(length), np.zeros(length, bool), [])
    _add_drift(draft, rng)
    _add_faults(draft, rng)
    _add_batches(draft, rng)
    _add_warm_up(draft, rng)
    is_named = rng.random() >= UNNAMED
    _add_pauses(draft, rng, is_named)
    _add_spikes(draft, rng, rng.uniform(*SPIKES), SPIKE_SIZE)
    base_s = _log_uniform(rng, *BASE_S)
    seconds = base_s * draft.factor * draw_jitter(rng, length, jitter / 100)
    tokens = np.round(draft.tokens * 2.0 ** rng.integers(12, 22))
    return Series(
        f"{jitter}-{seed}-{index}",
        np.arange(length, dtype=np.int64),
        np.maximum(seconds, base_s / 100),
        tokens,
        draft.masked,
        tuple(sorted(draft.labels)),
    )


def draw_falcon(jitter: int, seeds: range, jobs: int = JOBS_PER_SEED) -> Iterator[Series]:
    """Yield jobs like those by which the figures of FALCON were reproduced."""
    for seed in seeds:
        for index in range(jobs):
            rng = np.random.default_rng([2, jitter, seed, index])
            ones = np.ones(FALCON_LENGTH)
            draft = Draft(ones.copy(), ones, np.zeros(FALCON_LENGTH, bool), [])
            if rng.random() < FALCON_DRIFTING:
                draft.factor *= 1 + np.linspace(0, rng.uniform(*FALCON_DRIFT), FALCON_LENGTH)
            if rng.random() < FALCON_FAULTY:
                duration = int(_log_uniform(rng, *FALCON_DURATION))
                start = int(rng.integers(100, FALCON_LENGTH - duration - 20))
                _slow_down(draft, start, duration, rng.uniform(*FALCON_SLOWDOWN), 0)
            _add_spikes(draft, rng, FALCON_SPIKES, FALCON_SPIKE_SIZE)
            seconds = draft.factor * (1 + jitter / 100 * rng.standard_normal(FALCON_LENGTH))
            iteration = np.arange(FALCON_LENGTH, dtype=np.int64)
            name = f"falcon-{jitter}-{seed}-{index}"
            yield Series(name, iteration, seconds, ones, draft.masked, tuple(draft.labels))


def draw_jitter(rng: np.random.Generator, length: int, sd: float) -> Floats:
    """Return factors around 1 of one of the shapes."""
    match TAILS[rng.integers(len(TAILS))]:
        case "normal":
            factor = 1 + sd * rng.standard_normal(length)
        case "lognormal":
            factor = np.exp(sd * rng.standard_normal(length))
        case "gamma":
            factor = rng.gamma(1 / sd**2, sd**2, length)
        case "student":
            factor = 1 + sd * np.clip(rng.standard_t(5, length) / np.sqrt(5 / 3), -6, 6)
        case _:
            steps = rng.standard_normal(length) * np.sqrt(1 - CORRELATION**2)
            for place in range(1, length):
                steps[place] += CORRELATION * steps[place - 1]
            factor = 1 + sd * steps
    return np.maximum(factor, 0.1)


def _add_drift(draft: Draft, rng: np.random.Generator) -> None:
    if rng.random() < DRIFTING:
        place = np.linspace(0, 1, len(draft.factor))
        wave = rng.uniform(*WAVE) * np.sin(2 * np.pi * (place + rng.random()))
        draft.factor *= 1 + rng.uniform(*DRIFT) * place + wave


def _add_faults(draft: Draft, rng: np.random.Generator) -> None:
    length = len(draft.factor)
    count = int(rng.choice(len(FAULTS), p=FAULTS))
    free = FIRST_FAULT
    if count and rng.random() < FROM_START:
        duration = int(_log_uniform(rng, 30, 100))
        _slow_down(draft, 0, duration, rng.uniform(*SLOWDOWN), 0)
        free, count = duration + FIRST_FAULT, count - 1
    for left in range(count, 0, -1):
        duration = int(_log_uniform(rng, *DURATION))
        room = (length - free) // left - duration - FIRST_FAULT
        if room <= 0:
            continue
        start = free + int(rng.integers(room))
        if left == 1 and rng.random() < TO_END:
            start = length - duration
        ramp = int(rng.integers(*RAMP)) if rng.random() < RAMPING else 0
        _slow_down(draft, start, duration, rng.uniform(*SLOWDOWN), min(ramp, duration // 3))
        free = start + duration + FIRST_FAULT


def _slow_down(draft: Draft, start: int, duration: int, size: float, ramp: int) -> None:
    shape = np.ones(duration)
    shape[:ramp] = (np.arange(ramp) + 1) / (ramp + 1)
    draft.factor[start : start + duration] *= 1 + size * shape
    draft.labels.append((start, start + duration - 1))


def _add_batches(draft: Draft, rng: np.random.Generator) -> None:
    length = len(draft.tokens)
    if rng.random() < ELASTIC:
        for place in rng.integers(30, length, rng.integers(*BATCH_STEPS)):
            draft.tokens[place:] = rng.choice(BATCHES)
    if rng.random() < NOISY_TOKENS:
        draft.tokens *= np.exp(rng.uniform(*TOKEN_NOISE) * rng.standard_normal(length))
    fixed = rng.uniform(*OVERHEAD)
    draft.factor *= fixed + (1 - fixed) * draft.tokens


def _add_warm_up(draft: Draft, rng: np.random.Generator) -> None:
    if rng.random() < WARM_UP and not any(start == 0 for start, _ in draft.labels):
        length = int(rng.integers(*WARM_UP_LENGTH))
        size = rng.uniform(*WARM_UP_FACTOR)
        draft.factor[: 3 * length] *= 1 + size * np.exp(-np.arange(3 * length) / (length / 2))


def _add_pauses(draft: Draft, rng: np.random.Generator, is_named: bool) -> None:
    length = len(draft.factor)
    pauses: list[tuple[int, int, float]] = []
    if rng.random() < EVALUATING:
        every, factor = int(rng.integers(*EVALUATE_EVERY)), _log_uniform(rng, *EVALUATE_FACTOR)
        most = EVALUATE_LENGTH[1] if is_named else UNNAMED_LENGTH
        lasts = int(rng.integers(EVALUATE_LENGTH[0], most + 1))
        pauses += [(start, lasts, factor) for start in range(every, length, every)]
    if rng.random() < CHECKPOINTING:
        every, factor = int(rng.integers(*CHECKPOINT_EVERY)), _log_uniform(rng, *CHECKPOINT_FACTOR)
        pauses += [(start, 1, factor) for start in range(every, length, every)]
    for start, lasts, factor in pauses:
        draft.factor[start : start + lasts] *= factor
        if is_named:
            draft.masked[start : start + lasts] = True


def _add_spikes(
    draft: Draft, rng: np.random.Generator, share: float, size: tuple[float, float]
) -> None:
    length = len(draft.factor)
    hit = rng.random(length) < share
    draft.factor[hit] *= 1 + rng.uniform(*size, int(hit.sum()))


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
