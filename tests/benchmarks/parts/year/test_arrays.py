"""The program of an array is in each ledger once at most, in the way of this release."""

from __future__ import annotations

from benchmarks.parts.year.arrays import array_megabytes


def test_a_program_that_is_recorded_once_does_not_grow_with_the_jobs() -> None:
    few, many = (array_megabytes(jobs, 56) for jobs in (10, 40))
    for ledger in ("admission", "placement"):
        assert many["once"][ledger] - few["once"][ledger] < 30 * 0.005
        assert many["repeated"][ledger] - few["repeated"][ledger] > 30 * 0.05
