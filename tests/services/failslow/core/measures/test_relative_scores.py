"""Scores are those of NVRx: the fastest rank has 1, one that takes twice as long 0.5."""

from __future__ import annotations

from services.failslow.core.measures.relative_scores import relative_perf_scores, stragglers


def test_scores_are_relative_to_the_fastest_median() -> None:
    own_s = {0: [1.0, 1.0, 9.0], 1: [2.0], 2: [1.25, 1.25], 3: []}
    scores = relative_perf_scores(own_s)
    assert scores == {0: 1.0, 1: 0.5, 2: 0.8}
    assert stragglers(scores) == [1]
    assert stragglers(scores, 0.9) == [1, 2]


def test_times_of_nothing_have_no_scores() -> None:
    assert relative_perf_scores({}) == {}
    assert relative_perf_scores({0: [0.0], 1: [1.0]}) == {0: 1.0, 1: 0.0}
