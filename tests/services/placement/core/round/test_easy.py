"""Queue modes: the effect of a job that does not fit on those behind it."""

from __future__ import annotations

import pytest

from services.placement.core.round.easy import expected_end
from shared.contracts.admission import JobAdmitted
from shared.contracts.placement import JobHeld
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.reports import ProgressReported, WorkerProgressed
from tests.services.placement.core.lane import Lane, job, kinds, lane, only, refused


def simulated(mode: str, *nodes: str, gpus: int = 8, **settings: object) -> Lane:
    """A pool as simulations have it: a round comes 1 ms after its facts."""
    return lane(*nodes, gpus=gpus, queue_mode=mode, settle_ms=1, round_ms=1, **settings)


def begin(pool: Lane, *jobs: JobAdmitted) -> None:
    """These run, and 1 s has passed since."""
    pool.submit(*jobs)
    pool.wake()
    pool.ready(*(each.job_id for each in jobs))
    pool.feed(after_ms=1000)


def queue_up(pool: Lane, *jobs: JobAdmitted) -> dict[str, str]:
    """They come, a round is run: phase of each, or why it is held."""
    pool.submit(*jobs)
    pool.wake()
    names = [each.job_id for each in jobs]
    return {n: pool.job(n).hold_reason or pool.job(n).phase for n in names}


def test_strict_no_job_passes_the_first_that_does_not_fit() -> None:
    pool = simulated("strict", "n1")
    begin(pool, job("x", 4))
    assert queue_up(pool, job("a", 2), job("big", 4), job("small", 1)) == {
        "a": "placed",
        "big": "no_capacity",
        "small": "behind_head",
    }
    (held,) = [e for e in pool.facts if e.event.subject == "small" and type(e.event) is JobHeld]
    assert held.event.detail["head"] == "big"  # type: ignore[attr-defined]


def test_strict_the_line_moves_when_the_head_fits() -> None:
    pool = simulated("strict", "n1")
    begin(pool, job("x", 4))
    queue_up(pool, job("big", 8), job("small", 1), job("last", 8))
    pool.exited("x", after_ms=100)
    pool.wake()
    assert pool.job("big").phase == "placed"
    assert [pool.job(n).hold_reason for n in ("small", "last")] == ["no_capacity", "behind_head"]
    pool.ready("big")
    pool.exited("big", after_ms=100)
    assert [e.job_id for e in pool.wake() if type(e).__name__ == "JobPlaced"] == ["small"]  # type: ignore[attr-defined]


def test_strict_a_higher_class_still_goes_first() -> None:
    pool = simulated("strict", "n1")
    begin(pool, job("x", 4, preemptible=False))
    result = queue_up(pool, job("big", 8), job("high", 1, priority_class="high"))
    assert result == {"big": "no_capacity", "high": "placed"}


def test_strict_a_job_in_backoff_is_not_in_line() -> None:
    pool = simulated("strict", "n1")
    pool.submit(job("a", 8))
    pool.wake()
    pool.report(*pool.all("a", refused))
    assert queue_up(pool, job("b", 1)) == {"b": "placed"}


def test_no_job_waits_behind_one_that_could_never_fit() -> None:
    """Else it would hold the queue for ever, or an EASY queue would have no reservation at all."""
    strict = simulated("strict", "n1")
    assert queue_up(strict, job("huge", 16), job("b", 1)) == {"huge": "no_node_fits", "b": "placed"}
    easy = simulated("easy", "n1")
    begin(easy, job("x", 4, walltime_s=100.0))
    assert queue_up(easy, job("huge", 16), job("head", 8), job("b", 1)) == {
        "huge": "no_node_fits",
        "head": "no_capacity",
        "b": "reserved_for_head",
    }


def test_easy_a_job_passes_the_head_only_if_it_ends_in_time_or_keeps_off_its_nodes() -> None:
    """x frees n1 at 100 s, where the head needs all of it: 4 are free there, and none on n2."""
    pool = simulated("easy", "n1", "n2")
    begin(pool, job("x", 4, walltime_s=101.0), job("y", 8, walltime_s=1000.0))
    result = queue_up(
        pool,
        job("head", 8),
        job("long", 1, walltime_s=101.0),
        job("short", 1, walltime_s=90.0),
        job("unknown", 1),
    )
    assert result == {
        "head": "no_capacity",
        "long": "reserved_for_head",
        "short": "placed",
        "unknown": "reserved_for_head",
    }
    assert pool.nodes_of("short") == ("n1",)


def test_easy_the_reason_names_the_head_and_its_shadow_time() -> None:
    pool = simulated("easy", "n1")
    begin(pool, job("x", 4, walltime_s=101.0))
    started = pool.job("x").started_at
    pool.submit(job("head", 8), job("long", 1))
    held = [e for e in only(JobHeld, pool.wake()) if e.subject == "long"]
    assert held[0].detail["head"] == "head"
    assert held[0].detail["shadow_at"] == started + 101_000


def test_easy_another_node_is_free_for_all() -> None:
    pool = simulated("easy", "n1", "n2")
    begin(pool, job("x", 6, walltime_s=100.0), job("y", 6, walltime_s=200.0))
    assert pool.nodes_of("x") == ("n1",)
    assert queue_up(pool, job("head", 8), job("long", 2), job("long2", 2)) == {
        "head": "no_capacity",
        "long": "placed",
        "long2": "reserved_for_head",
    }
    assert pool.nodes_of("long") == ("n2",), "n1 is the head's from 100 s on"


def test_easy_a_job_may_end_at_the_very_shadow_time() -> None:
    pool = simulated("easy", "n1")
    begin(pool, job("x", 4, walltime_s=100.0))
    ends = pool.job("x").started_at + 100_000
    pool.submit(job("head", 8))
    round_at = pool.decider.next_wake(pool.state)
    assert round_at is not None
    left_s = (ends - round_at) / 1000
    pool.submit(job("fits", 1, walltime_s=left_s), job("over", 1, walltime_s=left_s + 0.001))
    pool.wake()
    assert (pool.job("fits").phase, pool.job("over").hold_reason) == ("placed", "reserved_for_head")


@pytest.mark.parametrize(("passed_s", "shadow_s"), [(99, 100), (100, 200), (399, 400), (401, 800)])
def test_easy_an_estimate_that_was_overrun_doubles_until_it_lies_ahead(
    passed_s: int, shadow_s: int
) -> None:
    pool = simulated("easy", "n1")
    pool.submit(job("x", 4, walltime_s=100.0))
    pool.wake()
    pool.ready("x")
    started = pool.job("x").started_at
    pool.submit(job("head", 8), job("late", 1), after_ms=passed_s * 1000 - 1)
    (held,) = [e for e in only(JobHeld, pool.wake()) if e.subject == "late"]
    assert held.detail["shadow_at"] == started + shadow_s * 1000


def test_easy_without_estimates_no_job_can_delay_the_head() -> None:
    pool = simulated("easy", "n1")
    begin(pool, job("x", 4))
    assert queue_up(pool, job("head", 8), job("b", 1)) == {"head": "no_capacity", "b": "placed"}


def test_easy_jobs_without_an_estimate_never_free_anything_for_the_head() -> None:
    pool = simulated("easy", "n1", "n2")
    begin(pool, job("x", 6), job("y", 6, walltime_s=500.0))
    assert queue_up(pool, job("head", 8), job("b", 2, walltime_s=400.0), job("c", 2)) == {
        "head": "no_capacity",
        "b": "placed",
        "c": "reserved_for_head",
    }
    assert pool.nodes_of("b") == ("n1",)


def test_easy_a_gang_waits_for_the_last_of_the_ends_it_needs() -> None:
    """Two whole nodes: of n1 at 100 s, n2 at 300 s, n3 at 200 s the first two ends are enough."""
    pool = simulated("easy", "n1", "n2", "n3", gpus=4)
    begin(
        pool,
        job("x", 4, walltime_s=100.0),
        job("y", 4, walltime_s=300.0),
        job("z", 3, walltime_s=200.0),
    )
    pool.submit(job("head", 4, workers=2), job("b", 1))
    (held,) = [e for e in only(JobHeld, pool.wake()) if e.subject == "b"]
    assert held.detail["shadow_at"] == pool.job("z").started_at + 200_000


def test_easy_what_starts_in_the_same_round_counts_for_the_shadow() -> None:
    pool = simulated("easy", "n1")
    pool.submit(job("x", 4, walltime_s=50.0), job("head", 8), job("b", 1, walltime_s=51.0))
    events = pool.wake()
    assert kinds(events)[0] == "JobPlaced"
    (held,) = [e for e in only(JobHeld, events) if e.subject == "b"]
    assert held.detail["shadow_at"] == pool.now + 50_000


def test_easy_has_no_reservation_for_the_second_that_does_not_fit() -> None:
    pool = simulated("easy", "n1", "n2")
    begin(pool, job("x", 6, walltime_s=100.0), job("y", 6, walltime_s=200.0))
    result = queue_up(pool, job("head", 8), job("second", 7), job("c", 2))
    assert result == {"head": "no_capacity", "second": "no_capacity", "c": "placed"}


def test_easy_a_gang_of_shares_has_a_shadow_too() -> None:
    pool = simulated("easy", "n1", gpus=1)
    begin(pool, job("x", 0.5, walltime_s=100.0))
    assert queue_up(pool, job("head", 0.8), job("b", 0.2, walltime_s=98.0), job("c", 0.2)) == {
        "head": "no_capacity",
        "b": "placed",
        "c": "reserved_for_head",
    }


def test_easy_a_head_that_makes_others_stop_needs_no_other_reservation() -> None:
    pool = simulated("easy", "n1", "n2")
    begin(pool, job("x", 8, walltime_s=100.0), job("y", 7, walltime_s=100.0))
    result = queue_up(pool, job("head", 8, priority_class="high"), job("b", 1))
    assert result == {"head": "no_capacity", "b": "behind_reservation"}
    pool.stopped("y", after_ms=1)
    pool.wake()
    assert pool.job("head").phase == "placed"


def test_easy_one_that_ends_in_time_is_found_behind_many_alike_that_do_not() -> None:
    pool = simulated("easy", "n1")
    begin(pool, job("x", 4, walltime_s=101.0))
    head = job("head", 8)
    late = [job(f"late{n:02}", 1, walltime_s=110.0) for n in range(20)]
    pool.submit(head, *late, job("short", 1, walltime_s=90.0))
    pool.wake()
    assert pool.job("short").phase == "placed"
    assert {pool.job(each.job_id).hold_reason for each in late} == {"reserved_for_head"}


def test_skip_passes_over_what_does_not_fit() -> None:
    pool = simulated("skip", "n1")
    begin(pool, job("x", 4, walltime_s=100.0))
    assert queue_up(pool, job("big", 8), job("b", 4)) == {"big": "no_capacity", "b": "placed"}


def test_easy_backfills_by_predicted_run_times() -> None:
    """The head may start when `x` ends, after 100 s: `short` is gone by then, `long` is not."""
    pool = simulated("easy", "n1", easy_runtime="history")
    run_s = {"x": 101.0, "head": 50.0, "long": 200.0, "short": 20.0}
    ranked = tuple(Ranked(job_id=name, score=0.0, run_s=s) for name, s in run_s.items())
    pool.feed(pool.an("priority", QueueRanked(pool="p", base_policy="fcfs", ranked=ranked)))
    begin(pool, job("x", 4))
    result = queue_up(pool, job("head", 8), job("long", 2), job("short", 2))
    assert result == {"head": "no_capacity", "long": "reserved_for_head", "short": "placed"}


def ranked(pool: Lane, **run_s: float) -> None:
    jobs = tuple(Ranked(job_id=name, score=0.0, run_s=s) for name, s in run_s.items())
    pool.feed(pool.an("priority", QueueRanked(pool="p", base_policy="fcfs", ranked=jobs)))


@pytest.mark.parametrize(
    ("guarded", "user", "name", "result"),
    [
        (True, "ann", "run-9", "reserved_for_head"),
        (True, "ann", "other", "placed"),
        (True, "bob", "run-9", "placed"),
        (False, "ann", "run-9", "placed"),
    ],
)
def test_easy_an_estimate_is_at_least_the_longest_run_of_the_program(
    guarded: bool, user: str, name: str, result: str
) -> None:
    """`x` was to run for 150 s like `next`, and has run for 201 s: it may end 99 s from now."""
    pool = simulated("easy", "n1", easy_runtime="history", guard_predictions=guarded)
    ranked(pool, x=150.0, head=50.0, next=20.0)
    pool.submit(job("x", 4, user="ann", name="run-1"))
    pool.wake()
    pool.ready("x")
    pool.submit(job("head", 8), after_ms=200_000)
    assert queue_up(pool, job("next", 2, user=user, name=name))["next"] == result


def test_easy_the_longest_run_counts_up_to_the_walltime() -> None:
    """The job ends at its walltime, whatever others of its name do."""
    pool = simulated("easy", "n1", easy_runtime="history", guard_predictions=True)
    ranked(pool, x=150.0, head=50.0, next=20.0)
    pool.submit(job("x", 4, user="ann", name="run"))
    pool.wake()
    pool.ready("x")
    pool.submit(job("head", 8), after_ms=200_000)
    result = queue_up(pool, job("next", 2, user="ann", name="run", walltime_s=60.0))
    assert result["next"] == "placed"


def reports_end(pool: Lane, name: str, in_s: float) -> None:
    """The job reports one iteration of two, which takes so long."""
    one = WorkerProgressed(
        allocation_id=pool.ids_of(name)[0],
        job_id=name,
        ran_ms=pool.now - pool.job(name).started_at,
        step=1,
        steps_total=2,
        iteration_s=in_s,
    )
    pool.feed(pool.an("reports", ProgressReported(executor_id="e1", progress=(one,))))


@pytest.mark.parametrize(("in_s", "expected_s"), [(20.0, 20.0), (150.0, 150.0), (100_000.0, 250.0)])
@pytest.mark.parametrize("walltime_s", [None, 1e6])
def test_easy_a_report_shortens_the_expected_end_and_lengthens_it_as_long_as_the_job_ran(
    in_s: float, expected_s: float, walltime_s: float | None
) -> None:
    """`x` was to run for 300 s and has run for 50 s, then for as long as it has run by then."""
    pool = simulated("easy", "n1", easy_runtime="history", use_progress=True)
    ranked(pool, x=300.0)
    pool.submit(job("x", 4, walltime_s=walltime_s))
    pool.wake()
    pool.ready("x")
    pool.now += 50_000
    x = pool.job("x")
    reports_end(pool, "x", in_s)
    assert expected_end(x, pool.now, 1.0) == pool.now + round(expected_s * 1000)
    if in_s > 300.0:
        pool.now += 450_000
        assert expected_end(x, pool.now, 1.0) == pool.now + 500_000, "as long again"


def test_easy_a_report_that_was_outrun_counts_no_more() -> None:
    pool = simulated("easy", "n1", easy_runtime="history", use_progress=True)
    ranked(pool, x=300.0)
    begin(pool, job("x", 4))
    x = pool.job("x")
    reports_end(pool, "x", 20.0)
    assert expected_end(x, pool.now + 19_999, 1.0) == pool.now + 20_000
    assert expected_end(x, pool.now + 20_000, 1.0) == x.started_at + 300_000


def test_easy_a_report_gives_an_end_to_a_job_without_an_estimate() -> None:
    pool = simulated("easy", "n1", use_progress=True)
    begin(pool, job("x", 4))
    assert expected_end(pool.job("x"), pool.now, 1.0) is None
    reports_end(pool, "x", 5000.0)
    assert expected_end(pool.job("x"), pool.now, 1.0) == pool.now + 5_000_000


@pytest.mark.parametrize(("reported_s", "result"), [(None, "reserved_for_head"), (150.0, "placed")])
def test_easy_a_job_passes_the_head_that_starts_later_by_a_report(
    reported_s: float | None, result: str
) -> None:
    """`x` was to run for 200 s and has run for 180 s; `next` takes 100 s."""
    pool = simulated("easy", "n1", easy_runtime="history", use_progress=True)
    ranked(pool, x=200.0, head=50.0, next=100.0)
    pool.submit(job("x", 4))
    pool.wake()
    pool.ready("x")
    pool.submit(job("head", 8), after_ms=180_000)
    if reported_s is not None:
        reports_end(pool, "x", reported_s)
    assert queue_up(pool, job("next", 2))["next"] == result
