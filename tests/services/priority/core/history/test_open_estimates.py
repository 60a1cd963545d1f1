"""Published estimates: the first of a wait is judged by the start."""

from __future__ import annotations

from services.priority.core.history.open_estimates import OpenEstimates
from services.priority.core.history.start_calibration import FADE, PERIOD_S, RECENT, shift_interval
from shared.contracts.ranking import JobStartEstimated


def estimate(p10_at: int, p50_at: int, p90_at: int, job_id: str = "a") -> JobStartEstimated:
    return JobStartEstimated(
        job_id=job_id, tenant="red", pool="p", p10_at=p10_at, p50_at=p50_at, p90_at=p90_at
    )


def test_the_first_estimate_is_judged_and_the_last_is_shown() -> None:
    estimates = OpenEstimates()
    estimates.note(estimate(2_000, 3_000, 4_000), at=1_000, time_scale=1.0)
    estimates.note(estimate(8_000, 9_000, 10_000), at=5_000, time_scale=1.0)
    assert estimates.by_job["a"].p90_at == 10_000
    estimates.start("a", 9_000, 1.0)
    assert (estimates.coverage.samples, estimates.coverage.inside) == (1, 0.0)
    ((low, middle, high),) = estimates.calibration.errors
    assert low > middle > high > 0.0, "it started after 8 s, and not within 1 to 3"
    assert estimates.by_job == {}


def test_a_start_within_the_interval_counts_in_cluster_seconds() -> None:
    estimates = OpenEstimates()
    estimates.note(estimate(2_000, 3_000, 4_000), at=1_000, time_scale=60.0)
    estimates.start("a", 3_500, 60.0)
    assert estimates.coverage.inside == 1.0
    ((low, middle, high),) = estimates.calibration.errors
    assert low > middle > 0.0 > high


def test_a_job_that_leaves_or_has_no_estimate_teaches_nothing() -> None:
    estimates = OpenEstimates()
    estimates.note(estimate(2_000, 3_000, 4_000), at=1_000, time_scale=1.0)
    estimates.drop("a")
    estimates.start("a", 3_500, 1.0)
    assert estimates.coverage.samples == 0


def test_errors_are_those_of_the_simulation_where_it_is_known() -> None:
    estimates = OpenEstimates()
    simulated = estimate(2_000, 3_000, 4_000).model_copy(update={"simulated_s": (9.0, 19.0, 29.0)})
    estimates.note(simulated, at=1_000, time_scale=1.0)
    assert [*estimates.outlived(11_000, 1.0)] == [((9.0, 19.0, 29.0), 10.0)]
    estimates.start("a", 20_000, 1.0)
    ((_, middle, _),) = estimates.calibration.errors
    assert middle == 0.0


def test_a_start_that_was_recorded_before_its_estimate_took_no_time() -> None:
    """Two ledgers have no order between them."""
    estimates = OpenEstimates()
    estimates.note(estimate(2_000, 3_000, 4_000), at=90_000, time_scale=1.0)
    estimates.start("a", 1_000, 1.0)
    assert len(estimates.calibration.errors) == 1


def test_a_burst_of_jobs_is_judged_as_many_starts_and_teaches_as_few() -> None:
    estimates = OpenEstimates()
    for job in range(50):
        estimates.note(estimate(2_000, 3_000, 4_000, f"j{job}"), at=1_000 + job, time_scale=1.0)
    assert len([*estimates.outlived(9_000, 1.0)]) == 6
    for job in range(50):
        estimates.start(f"j{job}", 9_000, 1.0)
    assert len(estimates.calibration.errors) == 6
    assert estimates.coverage.samples == 50


def test_the_later_estimates_of_a_job_are_not_counted() -> None:
    estimates = OpenEstimates()
    for at in range(1_000, 6_000, 1_000):
        estimates.note(estimate(at, at, at + 9_000), at, 1.0)
    assert estimates.calibration.in_period == 1


def test_a_period_is_of_cluster_time() -> None:
    estimates = OpenEstimates()
    time_scale = 60.0
    next_at = 1_000 + round(PERIOD_S * 1000 / time_scale)
    for job, at in (("a", 1_000), ("b", 1_001), ("c", next_at - 1), ("d", next_at)):
        estimates.note(estimate(at, at, at + 9_000, job), at, time_scale)
    assert [job for job, one in estimates.by_job.items() if one.teaches] == ["a", "b", "d"]


def test_jobs_that_never_start_do_not_widen_the_intervals_of_all_others_for_ever() -> None:
    """Twenty jobs for which the pool has no room, while others start as simulated."""
    estimates, period_ms = OpenEstimates(), round(PERIOD_S * 1000)
    simulated_s = (600.0, 3_600.0, 7_200.0)
    at = 0

    def estimated(job: str) -> None:
        event = estimate(at + 600_000, at + 3_600_000, at + 7_200_000, job)
        event = event.model_copy(update={"simulated_s": simulated_s})
        estimates.note(event, at, time_scale=1.0)

    def p90_s() -> float:
        shifts = estimates.calibration.shifts(estimates.outlived(at, 1.0))
        return shift_interval(simulated_s, shifts).p90_s

    for job in range(20):
        at += period_ms
        estimated(f"stuck-{job}")
    for job in range(RECENT + 20):
        at += period_ms
        estimated(f"j{job}")
        estimates.start(f"j{job}", at + 3_600_000, 1.0)
        if job == FADE / 2:
            assert p90_s() > 20 * 7_200.0, "they are held for news of the queue at first"
    assert len(estimates.by_job) == 20
    assert p90_s() < 1.5 * 7_200.0
