"""The profiles are generated as published: quantiles, sizes, hours, tenants, names that recur."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from functools import cache
from statistics import NormalDist, fmean, pvariance

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.workload.arrivals import START_S
from simulator.workload.campaigns import WALLTIMES_S, duration_s, generate_campaigns
from simulator.workload.columns import Columns
from simulator.workload.errors import TraceError
from simulator.workload.jobs import columns_from
from simulator.workload.locate import has_trace
from simulator.workload.profiles import LEVELS, PROFILES
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load, read_columns

pytestmark = pytest.mark.slow

JOBS = 30_000
SOURCES = {
    "helios": "helios_venus",
    "philly": "philly",
    "itp": "msft_itp",
    "pai": "alibaba_pai_2020",
    "gpu-sharing": "alibaba_gpu_2023",
}
NAMES = list(PROFILES)

DIGEST = """
from hashlib import sha256
from simulator.workload.source import load
print(sha256(repr(load("synthetic:helios", 300, seed=7).jobs).encode()).hexdigest())
"""
SHA256 = "ba9d2a28d677207e40adb8ac0a1fb458a220cb5c3a79ad9f2e2186c24d3cccdb"


@cache
def made(name: str) -> tuple[list[WorkloadJob], Columns]:
    tenants = tuple(f"t{number}" for number in range(len(PROFILES[name].tenants)))
    jobs = generate_campaigns(PROFILES[name], JOBS, 0, tenants)
    return jobs, columns_from(jobs)


def share_of(counts: tuple[tuple[float, int], ...], gpus: float) -> float:
    return dict(counts)[gpus] / sum(count for _, count in counts)


def lag_correlation(durations_s: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    logs = np.log(np.maximum(durations_s, 1))
    return float(np.corrcoef(logs[1:], logs[:-1])[0, 1])


@pytest.mark.process
@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_seed_gives_the_same_bytes_everywhere(hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", DIGEST]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == SHA256


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 2**32), st.integers(0, 60), st.integers(0, 60))
def test_fewer_jobs_of_a_seed_are_a_prefix_of_more(
    name: str, seed: int, fewer: int, more: int
) -> None:
    longer = generate_campaigns(PROFILES[name], fewer + more, seed, ["one", "two"])
    assert generate_campaigns(PROFILES[name], fewer, seed, ["one", "two"]) == longer[:fewer]


@pytest.mark.parametrize("name", NAMES)
def test_durations_of_each_size_have_the_published_quantiles(name: str) -> None:
    """The transform itself is exact; what it is given is checked by the test below."""
    for item in PROFILES[name].classes:
        for share, expected_s in zip(LEVELS[1:-1], item.quantiles_s[1:-1], strict=True):
            measured_s = duration_s(PROFILES[name], item.gpus, NormalDist().inv_cdf(share))
            assert measured_s == pytest.approx(expected_s, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_quantiles_of_a_workload_are_near_the_published_ones(name: str) -> None:
    """Of the most common size class: names recur, so one workload strays from them somewhat."""
    _, columns = made(name)
    classes = PROFILES[name].classes
    bounds = [-1.0, *(item.gpus for item in classes)]
    members = [
        (columns.gpus > low) & (columns.gpus <= high)
        for low, high in zip(bounds[:-1], bounds[1:], strict=True)
    ]
    common = max(range(len(classes)), key=lambda place: members[place].sum())
    durations_s = columns.duration_s[members[common]]
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        expected_s = classes[common].quantiles_s[LEVELS.index(share)]
        below = float((durations_s <= expected_s).mean())
        assert below == pytest.approx(share, abs=0.04)
    assert durations_s.min() >= classes[common].quantiles_s[0]
    assert durations_s.max() <= classes[common].quantiles_s[-1]


@pytest.mark.parametrize("name", NAMES)
def test_the_sizes_have_the_published_shares(name: str) -> None:
    _, columns = made(name)
    for gpus, _ in PROFILES[name].sizes:
        expected = share_of(PROFILES[name].sizes, gpus)
        assert (columns.gpus == gpus).mean() == pytest.approx(expected, abs=0.025)


@pytest.mark.parametrize("name", NAMES)
def test_arrivals_have_the_published_gaps_and_hours(name: str) -> None:
    profile = PROFILES[name]
    _, columns = made(name)
    gaps_s = np.diff(columns.submit_s)
    assert gaps_s.min() >= 0 and columns.submit_s[0] >= 0
    assert gaps_s.mean() == pytest.approx(profile.mean_gap_s, rel=0.1)
    assert np.median(gaps_s) == pytest.approx(profile.median_gap_s, rel=0.25)
    hours = ((columns.submit_s + START_S) // 3600 % 24).astype(int)
    got = np.bincount(hours, minlength=24) / JOBS * 24
    expected = np.array(profile.hours) / np.mean(profile.hours)
    assert np.abs(got - expected).max() < 0.35
    assert np.corrcoef(got, expected)[0, 1] > 0.85


@pytest.mark.parametrize("name", NAMES)
def test_tenants_have_the_published_shares(name: str) -> None:
    jobs, _ = made(name)
    shares = np.array(PROFILES[name].tenants) / sum(PROFILES[name].tenants)
    for number, expected in enumerate(shares):
        got = sum(job.tenant == f"t{number}" for job in jobs) / JOBS
        assert got == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_successive_durations_are_as_alike_as_published(name: str) -> None:
    _, columns = made(name)
    assert lag_correlation(columns.duration_s) == pytest.approx(
        PROFILES[name].correlation, abs=0.12
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_runs_of_a_name_are_more_alike_than_those_of_others(name: str) -> None:
    """The variance within a name is under 40 % of that of all jobs: history predicts the rest."""
    jobs, _ = made(name)
    by_name: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for job in jobs:
        by_name[job.tenant, job.user, job.name].append(float(np.log(job.duration_s)))
    recurring = [logs for logs in by_name.values() if len(logs) >= 5]
    assert sum(map(len, recurring)) > 0.5 * JOBS
    within = fmean(pvariance(logs) for logs in recurring)
    assert within < 0.4 * pvariance([float(np.log(job.duration_s)) for job in jobs])
    assert all(
        len({job.gpus for job in jobs if job.name == item[2] and job.user == item[1]}) == 1
        for item in list(by_name)[:20]
    )


def test_users_ask_for_round_walltimes_that_are_mostly_too_long() -> None:
    jobs, _ = made("helios")
    assert all(job.walltime_s is not None and job.walltime_s >= job.duration_s for job in jobs)
    assert {job.walltime_s for job in jobs} <= set(WALLTIMES_S)
    ratios = [job.walltime_s / job.duration_s for job in jobs if job.walltime_s]
    assert np.median(ratios) > 3


@pytest.mark.parametrize("name", NAMES)
def test_the_statistics_are_those_of_the_public_data(name: str) -> None:
    if not has_trace(SOURCES[name]):
        pytest.skip(f"needs the shared trace {SOURCES[name]}")
    profile, columns = PROFILES[name], read_columns(SOURCES[name])
    low = -1.0
    for item in profile.classes:
        last = item is profile.classes[-1]
        chosen = (columns.gpus > low) & ((columns.gpus <= item.gpus) | last)
        expected = np.quantile(np.maximum(columns.duration_s[chosen], 1), LEVELS)
        np.testing.assert_allclose(item.quantiles_s, expected, rtol=0.02, atol=1)
        low = item.gpus
    for gpus, count in profile.sizes:
        assert (np.round(columns.gpus, 2) == gpus).sum() == count
    assert lag_correlation(columns.duration_s) == pytest.approx(profile.correlation, abs=0.01)
    assert np.median(np.diff(columns.submit_s)) == profile.median_gap_s
    if name == "gpu-sharing":
        assert tuple((columns.outcome == code).sum() for code in (1, 0, -1)) == profile.outcomes
    if columns.tenants:
        assert sorted(np.bincount(columns.tenant), reverse=True) == list(profile.tenants)


def test_a_profile_is_loaded_by_name_with_the_given_tenants() -> None:
    trace = load("synthetic:philly", 200, seed=1, tenants=["a", "b"])
    assert len(trace.jobs) == 200
    assert {job.tenant for job in trace.jobs} == {"a", "b"}
    assert len(read_columns("synthetic:philly", 50)) == 50


def test_an_unknown_profile_is_answered_with_those_there_are() -> None:
    with pytest.raises(TraceError, match="there are helios, philly"):
        load("synthetic:moon")


def test_a_workload_without_tenants_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one tenant"):
        load("synthetic:itp", 1, tenants=[])


@pytest.mark.parametrize("name", NAMES)
def test_jobs_end_as_published(name: str) -> None:
    _, columns = made(name)
    outcomes = PROFILES[name].outcomes
    for code, count in zip((1, 0, -1), outcomes, strict=True):
        assert (columns.outcome == code).mean() == pytest.approx(count / sum(outcomes), abs=0.015)
