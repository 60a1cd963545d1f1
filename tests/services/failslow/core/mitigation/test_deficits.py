"""Costs of levels are carried over the attempts of a job, and paid for while it runs well."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.deficits import JOBS_KEPT, DeficitBook


def test_time_in_which_the_job_runs_well_pays_and_other_time_does_not() -> None:
    book = DeficitBook()
    book.charge("j", 100, 1.0, 0)
    assert book.at("j", 50) == pytest.approx(75)
    book.pause("j", 50)
    assert book.at("j", 500) == pytest.approx(75)
    book.resume("j", 500)
    book.resume("j", 510)
    assert book.at("j", 520) == pytest.approx(65)


def test_costs_add_up_and_a_job_that_has_paid_is_forgotten() -> None:
    book = DeficitBook()
    book.charge("j", 100, 1.0, 0)
    book.charge("j", 50, 0.25, 10)
    assert book.at("j", 20) == pytest.approx(143)
    book.pause("j", 1000)
    assert book == DeficitBook()
    assert book.at("j", 2000) == book.at("other", 0) == 0


def test_the_oldest_of_too_many_jobs_are_forgotten() -> None:
    book = DeficitBook()
    for number in range(JOBS_KEPT + 1):
        book.charge(str(number), 10, 1.0, 0)
    assert (book.at("0", 0), book.at("1", 0)) == (0, 10)
