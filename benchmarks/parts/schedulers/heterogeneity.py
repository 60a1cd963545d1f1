"""A scheduler that knows the speeds of types against the same one that does not.

`PUBLISHED` is Gavel's own; `AWARE` has the same shares and lets the jobs of a round exchange types.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.parts.command import Json
from shared.performance.rates import RateTable
from shared.process.progress import ReportLine
from shared.schedulers.registry import scheduler_of
from simulator.metrics.bootstrap import gain, hours
from simulator.metrics.outcome import Floats, Ints
from simulator.rounds.artifacts import trace_file
from simulator.rounds.gavel_jobs import TRACE, ModelAndGang, gavel_nodes, read_rates
from simulator.rounds.mixed_types import MixedTypesOptions, mixed_jobs
from simulator.rounds.world import RoundsOptions, RoundsWorld
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

GPUS = (36, 36, 36)
LOAD = 0.9
AWARE, PUBLISHED, BLIND = "gavel_exchange", "gavel", "gavel_blind"
GOAL = -0.30
ARRIVALS = "philly"


@dataclass(frozen=True, slots=True)
class TypesGain:
    """Mean JCT of the scored jobs of one part of the trace, h, and the gain with its interval.

    The ends are None where too few hours count.
    """

    first_job: int
    jobs: int
    blind_jct_h: float
    published_jct_h: float
    aware_jct_h: float
    gain: float
    low: float | None = None
    high: float | None = None


def measure(parts: int, jobs: int, report: ReportLine) -> Json:
    """Return gains over parts of Philly, each of so many jobs, of which the middle half is scored.

    The later jobs keep up the load until the scored ones have ended.
    """
    if trace_file(TRACE) is None or trace_file(ARRIVALS) is None:
        return {"skipped": f"the traces {TRACE} and {ARRIVALS} are not here"}
    began_s = time.process_time()
    gains = []
    for part in range(parts):
        gains.append(of_part(part, parts, jobs))
        report(f"part {part + 1} of {parts}: {gains[-1].gain:+.1%}")
    return {**summed(gains), "cpu_s": round(time.process_time() - began_s, 1)}


def of_part(part: int, parts: int, jobs: int) -> TypesGain:
    """Return the gain over one part of Philly, with models drawn by the number of the part."""
    path = trace_file(TRACE)
    assert path is not None
    rows = load(ARRIVALS).jobs
    first = part * (len(rows) // parts)
    options = MixedTypesOptions(GPUS, LOAD, part)
    jct_s, units = compare(rows[first : first + jobs], read_rates(path), options)
    gained = gain(jct_s[BLIND], jct_s[AWARE], units)
    return TypesGain(
        first,
        len(units),
        round(gained.base / 3600, 2),
        round(float(jct_s[PUBLISHED].mean()) / 3600, 2),
        round(gained.ours / 3600, 2),
        round(gained.gain, 3),
        *(None if math.isnan(end) else round(float(end), 3) for end in (gained.low, gained.high)),
    )


def summed(gains: Sequence[TypesGain]) -> Json:
    """Return the gain of the mean over parts, each of which has as many jobs."""
    blind_h = sum(own.blind_jct_h for own in gains)
    mean = sum(own.aware_jct_h for own in gains) / blind_h - 1.0
    published = sum(own.published_jct_h for own in gains) / blind_h - 1.0
    return {
        "load": LOAD,
        "gpus": list(GPUS),
        "aware": AWARE,
        "published": PUBLISHED,
        "blind": BLIND,
        "gain": round(mean, 3),
        "published_gain": round(published, 3),
        "goal": GOAL,
        "met": mean <= GOAL,
        "parts": [asdict(own) for own in gains],
    }


def compare(
    rows: Sequence[WorkloadJob], rates: Mapping[ModelAndGang, RateTable], options: MixedTypesOptions
) -> tuple[dict[str, Floats], Ints]:
    """Return JCT of the scored jobs by scheduler, and the hour in which each was submitted."""
    jct_s: dict[str, Floats] = {}
    submit_s: Floats = np.zeros(0)
    for name in (BLIND, PUBLISHED, AWARE):
        jobs = mixed_jobs(rows, rates, options)
        ids = [job.job_id for job in jobs]
        scored = set(ids[len(ids) // 4 : 3 * len(ids) // 4])
        world = RoundsWorld(
            jobs, gavel_nodes(GPUS), scheduler_of(name), RoundsOptions(seed=options.seed)
        )
        outcome = world.run(scored)
        ended = [job for job in outcome.jobs if job.job_id in scored]
        jct_s[name] = np.array([job.jct_s for job in ended])
        submit_s = np.array([job.submit_s for job in ended], np.float64)
    return jct_s, hours(submit_s, float(submit_s.min()))
