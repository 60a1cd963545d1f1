"""Stalls are counted between two scrapes, and bounded by the bucket that has the quantile."""

from __future__ import annotations

import math

from benchmarks.parts.chaos.stalls import as_json, bucket_of, subtract_counts


def test_only_stalls_in_between_count_and_a_restarted_process_began_at_zero() -> None:
    before = {0.05: 100.0, 0.25: 110.0, math.inf: 110.0}
    after = {0.05: 199.0, 0.25: 210.0, math.inf: 210.0}
    counts = subtract_counts(after, before)
    assert (bucket_of(counts, 0.99), bucket_of(counts, 1.0)) == (0.05, 0.25)
    assert subtract_counts({0.05: 7.0, 0.25: 7.0, math.inf: 7.0}, before)[math.inf] == 7.0


def test_infinity_is_written_as_a_text() -> None:
    assert (as_json(0.25), as_json(math.inf)) == (0.25, "no bucket")
