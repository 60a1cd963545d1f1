from __future__ import annotations

import pickle

import pytest

from services.admission.core.ended_jobs import OUTCOMES, EndedJob, EndedJobs


def test_an_ended_job_is_returned_by_its_id() -> None:
    jobs = EndedJobs()
    for n in range(3000):
        jobs.add(f"j{n}", EndedJob(OUTCOMES[n % 4], f"t{n % 7}", f"{n:010x}ffff"))
    assert len(jobs) == 3000
    for n in range(3000):
        assert jobs.get(f"j{n}") == EndedJob(OUTCOMES[n % 4], f"t{n % 7}", f"{n:010x}")
    assert jobs.get("ghost") is None


def test_a_job_without_a_digest_is_kept_too() -> None:
    jobs = EndedJobs()
    jobs.add("j", EndedJob("rejected", "acme", ""))
    assert jobs.get("j") == EndedJob("rejected", "acme", "0" * 10)


@pytest.mark.parametrize("digest", ["zz" * 16, "abc", "12345 7890", "\u0661" * 10])
def test_a_digest_that_is_not_hex_is_kept_as_none(digest: str) -> None:
    jobs = EndedJobs()
    jobs.add("j", EndedJob("failed", "acme", digest))
    jobs.add("k", EndedJob("failed", "acme", "0123456789"))
    assert jobs.get("j") == EndedJob("failed", "acme", "0" * 10)
    assert jobs.get("k") == EndedJob("failed", "acme", "0123456789")


def test_a_hundred_thousand_take_a_few_megabytes() -> None:
    jobs = EndedJobs()
    for n in range(100_000):
        jobs.add(f"j{n}", EndedJob("succeeded", "acme", "0123456789"))
    assert len(pickle.dumps(jobs)) < 5_000_000
