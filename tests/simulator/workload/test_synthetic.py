"""The generator is seeded, and has the shape of the traces that it cites."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.workload.synthetic import GPU_SHARES, HOUR_WEIGHTS, LONGEST_S, generate

DIGEST = """
from hashlib import sha256
from simulator.workload.synthetic import generate
print(sha256(repr(generate(200, 7)).encode()).hexdigest())
"""


def digest_under(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        [sys.executable, "-c", DIGEST], env=environment, capture_output=True, check=True, text=True
    ).stdout


@pytest.mark.process
def test_two_hash_seeds_give_the_same_workload() -> None:
    assert digest_under("1") == digest_under("2")


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(0, 40))
def test_fewer_jobs_of_a_seed_are_a_prefix_of_more(seed: int, fewer: int, more: int) -> None:
    longer = generate(fewer + more, seed)
    assert generate(fewer, seed) == longer[:fewer]


def test_another_seed_gives_another_workload() -> None:
    assert generate(20, 1) != generate(20, 2)


def test_jobs_come_by_time_with_keys_of_their_own() -> None:
    jobs = generate(2000, 0)
    assert [job.submit_s for job in jobs] == sorted(job.submit_s for job in jobs)
    assert len({job.job_key for job in jobs}) == 2000


def test_the_shape_is_that_of_the_cited_trace() -> None:
    jobs = generate(20_000, 0)
    durations = sorted(job.duration_s for job in jobs)
    assert 200 < median(durations) < 270
    assert durations[-1] <= LONGEST_S
    longest_tenth = sum(durations[18_000:])
    assert longest_tenth > 0.8 * sum(durations)
    for gpus, count in GPU_SHARES.items():
        share = sum(job.gpus == gpus for job in jobs) / 20_000
        assert share == pytest.approx(count / sum(GPU_SHARES.values()), abs=0.015)


def test_submits_follow_the_hours_of_the_day() -> None:
    jobs = generate(20_000, 0)
    hours = [int(job.submit_s // 3600 + 9) % 24 for job in jobs]
    expected = {hour: HOUR_WEIGHTS[hour] / sum(HOUR_WEIGHTS) for hour in range(24)}
    for hour, share in expected.items():
        assert hours.count(hour) / 20_000 == pytest.approx(share, abs=0.01)


def test_a_workload_without_tenants_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one tenant"):
        generate(1, 0, [])
