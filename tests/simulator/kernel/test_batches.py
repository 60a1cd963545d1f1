"""RLTune's batches: which jobs are in them, and the order that bounds their use."""

import numpy as np

from benchmarks.parts.policies.rules import oracle
from simulator.kernel.batches import (
    EVALUATED,
    invert_walltimes,
    make_batch,
    make_batches,
    run_batch,
)
from simulator.kernel.work import build_work
from simulator.metrics.outcome import ScheduleOutcome
from simulator.workload.jobs import columns_from
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

NODE = np.full(1, 8, np.int64)


def test_without_a_count_every_job_of_the_part_that_counts_is_in_one_batch() -> None:
    work = build_work(columns_from(load("synthetic", 2000).jobs))
    first, last = work.submit_ms[0], work.submit_ms[-1]
    counted = work.submit_ms[work.submit_ms >= first + EVALUATED[0] * (last - first)]
    made = make_batches(work, jobs=64, count=None, warm_up=0)
    submits = np.concatenate([batch.work.submit_ms for batch in made])
    assert submits.tolist() == counted[: len(submits)].tolist()
    assert len(counted) - len(submits) < 64


def test_with_a_count_so_many_lie_evenly_in_the_part_that_counts() -> None:
    work = build_work(columns_from(load("synthetic", 2000).jobs))
    made = make_batches(work, jobs=256, count=5, warm_up=128)
    assert [len(batch.work) for batch in made] == [128 + 256] * 5
    begins = [int(batch.work.submit_ms[0]) for batch in made]
    assert begins == sorted(set(begins))
    assert int(made[-1].work.submit_ms[-1]) == int(work.submit_ms[-1])


def test_longest_first_takes_the_longest_of_those_that_wait() -> None:
    jobs = [job("a", 0.0, 100.0), job("b", 1.0, 10.0), job("c", 2.0, 50.0)]
    whole = make_batch(build_work(columns_from(jobs)), 0, len(jobs), 0, NODE)
    rules = oracle("sjf", "skip").rules
    assert starts_s(run_batch(whole, rules, NODE)) == [0, 100, 110]
    assert starts_s(run_batch(invert_walltimes(whole), rules, NODE)) == [0, 150, 100]


def starts_s(outcome: ScheduleOutcome) -> list[int]:
    """A round comes 1 ms after what it is for."""
    return [round(start_s) for start_s in outcome.start_s.tolist()]


def job(key: str, submit_s: float, run_s: float) -> WorkloadJob:
    """It needs the whole node."""
    return WorkloadJob(key, "t", "", "", submit_s, run_s, 1, 8.0, None, 1.0, 1.0, True)
