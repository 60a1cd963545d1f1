"""Detectors of slow jobs on labelled iteration times, and what mitigation and schedules save.

Sliding window, change points, verified change points and Berth run over the synthetic suite of
`simulator/failslow/suite.py` at four levels of jitter, or over the jobs of `--suite FILE`.
`met` or `not met` per goal; `--out DIR` writes a page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.command import Json, serve
from benchmarks.parts.failslow.detectors import DETECTORS, compare, observations_per_s
from benchmarks.parts.failslow.goals import goals_of
from benchmarks.parts.failslow.healthy import healthy_figures
from benchmarks.parts.failslow.page import write_files
from benchmarks.parts.failslow.real import real_figures
from benchmarks.parts.failslow.saved import mitigated, pipeline, pipeline_gap, policies, room
from shared.process.progress import ReportLine
from simulator.failslow.files import read_series
from simulator.failslow.suite import JITTERS, JOBS_PER_SEED, REPORTED, draw_falcon, draw_suite


@dataclass(frozen=True, slots=True)
class FailSlowOptions:
    """`suite` is a Parquet file; `seeds` and `jobs` are the size of the synthetic suite."""

    suite: str = ""
    seeds: int = len(REPORTED)
    jobs: int = JOBS_PER_SEED
    out: str = ""


async def run(options: FailSlowOptions, report_line: ReportLine) -> Json:
    """Return the scores of each detector, and the other figures of slow jobs.

    Raises ValueError for an option or a file that leaves nothing to compare.
    """
    for name in ("seeds", "jobs"):
        if getattr(options, name) < 1:
            raise ValueError(f"{name}: {getattr(options, name)}, must be at least 1")
    began = time.process_time()
    result = (
        of_file(options.suite, report_line) if options.suite else of_seeds(options, report_line)
    )
    result["cpu_s"] = round(time.process_time() - began, 1)
    if options.out:
        write_files(Path(options.out), result)
    return result


def of_file(path: str, report_line: ReportLine) -> Json:
    jobs = read_series(Path(path))
    faulty = sum(bool(job.labels) for job in jobs)
    report_line(f"{path}: {len(jobs):,} jobs, {faulty:,} with slowdowns")
    scores = compare(jobs)
    return {
        "bench": "failslow",
        "suite": path,
        "jobs": len(jobs),
        "slow_jobs": faulty,
        "labels": sum(len(job.labels) for job in jobs),
        "iterations": sum(len(job.seconds) for job in jobs),
        **scores,
        "by_jitter": {},
        "mitigated": mitigated(),
        "pipeline": pipeline(),
        "observations_per_s": observations_per_s(jobs),
    }


def of_seeds(options: FailSlowOptions, report_line: ReportLine) -> Json:
    seeds = range(REPORTED.start, REPORTED.start + options.seeds)
    by_jitter: dict[str, dict[str, dict[str, float | None]]] = {}
    falcon: dict[str, dict[str, dict[str, float | None]]] = {}
    for jitter in JITTERS:
        by_jitter[str(jitter)] = compare(list(draw_suite(jitter, seeds, options.jobs)))
        falcon[str(jitter)] = compare(list(draw_falcon(jitter, seeds, options.jobs)))
        report_line(f"jitter {jitter} %: {by_jitter[str(jitter)]['berth']}")
    result: Json = {
        "bench": "failslow",
        "seeds": [seeds.start, seeds.stop - 1],
        "jobs": len(seeds) * options.jobs,
        **{name: by_jitter["1"][name] for name in DETECTORS},
        "by_jitter": by_jitter,
        "falcon": falcon,
        "healthy": healthy_figures(seeds, options.jobs),
        "real": real_figures(),
        "mitigated": mitigated(),
        "policies": policies(),
        "room": room(),
        "pipeline": pipeline(),
        "pipeline_gap": pipeline_gap(options.seeds),
        "observations_per_s": observations_per_s(list(draw_suite(1, seeds, options.jobs))),
    }
    return {**result, "goals": goals_of(result)}


if __name__ == "__main__":
    serve(run, FailSlowOptions, __doc__ or "")
