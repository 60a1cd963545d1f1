"""Small workloads for the kernel."""

from __future__ import annotations

from random import Random

from simulator.kernel.work import Work, build_work
from simulator.workload.jobs import columns_from
from simulator.workload.rows import WorkloadJob

Row = tuple[float, float, int, int]


def job(at: int, row: Row, user: str = "u", name: str = "n") -> WorkloadJob:
    submit_s, duration_s, workers, gpus = row
    return WorkloadJob(
        f"k{at:05d}", "t", user, name, submit_s, duration_s, workers, float(gpus), None, 1, 1, None
    )


def work(*rows: Row) -> Work:
    """Jobs as (submit s, duration s, workers, GPUs per worker)."""
    return build_work(columns_from([job(at, row) for at, row in enumerate(rows)]))


def mixed(count: int, seed: int) -> list[WorkloadJob]:
    """Gangs and single GPUs, of three users with names that come back."""
    random, submit_s, jobs = Random(seed), 0.0, []
    for at in range(count):
        submit_s = round(submit_s + random.expovariate(1 / 8), 3)
        workers, gpus = random.choice([(1, 1), (1, 1), (1, 2), (1, 8), (2, 8), (3, 2), (4, 8)])
        duration_s = round(min(900.0, max(0.05, random.lognormvariate(3.3, 1.2))), 3)
        row = (submit_s, duration_s, workers, gpus)
        jobs.append(job(at, row, f"u{random.randrange(3)}", f"n{random.randrange(4)}-7"))
    return jobs


def long_and_short(count: int, seed: int, nodes: int) -> list[WorkloadJob]:
    """Jobs of minutes that wait behind jobs of days: about what `nodes` of 8 GPUs can do."""
    random, submit_s, jobs = Random(seed), 0.0, []
    for at in range(count):
        workers, gpus = random.choice([(1, 1), (1, 1), (1, 2), (1, 4), (1, 8), (2, 8)])
        duration_s = round(min(172_800.0, random.lognormvariate(6.5, 2.2)), 3) + 1.0
        submit_s = round(submit_s + random.expovariate(nodes / 2_500), 3)
        row = (submit_s, duration_s, workers, gpus)
        jobs.append(job(at, row, f"u{random.randrange(3)}", f"n{random.randrange(4)}-7"))
    return jobs
