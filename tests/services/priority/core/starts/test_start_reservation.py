"""A reservation holds the first moment at which enough GPUs are free."""

from __future__ import annotations

from services.priority.core.starts.start_reservation import NEVER_S, Reservation, reserve


def test_a_reservation_begins_when_enough_jobs_have_ended() -> None:
    ends = [(10.0, 2.0), (20.0, 4.0), (30.0, 8.0)]
    assert reserve(5.0, 1.0, ends) == Reservation(20.0, 2.0)


def test_a_job_larger_than_all_that_ends_has_a_reservation_that_never_comes() -> None:
    assert reserve(9.0, 1.0, [(10.0, 2.0)]) == Reservation(NEVER_S, 0.0)


def test_a_later_end_is_admitted_on_spare_gpus_alone() -> None:
    reservation = Reservation(20.0, 2.0)
    assert reservation.admits(20.0, 8.0) and reservation.admits(99.0, 2.0)
    reservation.take(20.0, 8.0)
    assert reservation.spare_gpus == 2.0
    reservation.take(99.0, 2.0)
    assert not reservation.admits(99.0, 0.5)
