from __future__ import annotations

from services.admission.core.spot.guarantees import GuaranteeLog, PeriodCounts


def test_periods_count_by_time_and_by_hours() -> None:
    log = GuaranteeLog(window_s=100.0)
    for at_s, hours, kept in [(0, 1, False), (50, 1, True), (60, 4, False), (120, 4, True)]:
        log.note(at_s, hours, kept)
    assert log.since(40) == PeriodCounts(failed=1, kept=2)
    assert log.since(60) == PeriodCounts(failed=0, kept=1)
    assert log.all_of() == PeriodCounts(2, 2)
    assert log.all_of(4).failure_rate == 0.5


def test_what_is_older_than_the_window_stays_in_the_totals_alone() -> None:
    log = GuaranteeLog(window_s=100.0)
    log.note(0, 1, kept=False)
    log.note(101, 1, kept=True)
    assert log.since(-1) == PeriodCounts(0, 1)
    assert log.all_of(1) == PeriodCounts(1, 1)


def test_without_periods_none_has_failed() -> None:
    assert GuaranteeLog(1.0).all_of().failure_rate == 0
