from __future__ import annotations

import numpy as np

from simulator.failslow.scores import Score, score_all
from simulator.failslow.series import Detection, Label, Series


def job(*labels: Label) -> Series:
    ones = np.ones(300)
    return Series("a", np.arange(300), ones, ones, np.zeros(300, bool), labels)


def scored(labels: list[Label], *declared: int) -> Score:
    return score_all([job(*labels)], [[Detection(at, at) for at in declared]])


def test_a_declaration_within_the_slowdown_is_right_and_has_a_delay() -> None:
    score = scored([(100, 150)], 106)
    assert (score.right, score.false, score.missed, score.delays) == (1, 0, 0, [6])


def test_the_tolerance_after_the_slowdown_is_ten_iterations() -> None:
    assert scored([(100, 150)], 160).right == 1
    assert scored([(100, 150)], 161).false == 1
    assert scored([(100, 150)], 99).false == 1


def test_a_second_declaration_of_one_slowdown_is_false() -> None:
    score = scored([(100, 150)], 105, 120)
    assert (score.right, score.false) == (1, 1)


def test_a_job_is_right_if_it_is_declared_slow_and_is_or_neither() -> None:
    assert scored([(100, 150)], 105).jobs_right == 1
    assert scored([(100, 150)]).jobs_right == 0
    assert scored([]).jobs_right == 1
    assert scored([], 5).jobs_right == 0


def test_without_a_declaration_precision_is_one_and_there_is_no_delay() -> None:
    assert scored([(100, 150)]).plain() == {
        "precision": 1.0,
        "recall": 0.0,
        "job_accuracy": 0.0,
        "median_delay_iterations": None,
    }
