"""Jobs wait for faster GPUs where they are over sooner, never for longer than slow ones cost."""

from __future__ import annotations

from services.placement.core.round.view import view_of
from services.placement.core.solver.contended import instance_for_round, solve_now
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import Instance, RoundPlan, Wait
from services.placement.core.solver.solve import solve
from shared.contracts.placement import JobHeld, JobPlaced
from shared.contracts.ranking import QueueRanked, Ranked
from tests.services.placement.core.lane import Lane, job, only

DENSE = {"v100": 1.0, "k80": 0.1}
WORK = 1.0


def busy(run_s: float = 100.0) -> Lane:
    """A pool whose only V100 is in use for so long; its K80 is free."""
    made = Lane()
    made.pool(solver="cpsat", solver_ms=500)
    made.node("fast", 1, gpu_type="v100")
    made.run(job("runs", gpu_speeds=DENSE, walltime_s=run_s))
    made.node("slow", 1, gpu_type="k80")
    return made


def dense(name: str, run_s: float | None) -> Lane:
    made = busy()
    made.submit(job(name, gpu_speeds=DENSE, walltime_s=run_s), after_ms=1000)
    return made


def answered(made: Lane) -> list[JobPlaced]:
    message = solve_now(made.state, WORK)
    return only(JobPlaced, made.feed(made.an("local", message))) if message else []


def taken(made: Lane) -> Instance:
    return instance_of(view_of(made.state, made.now))


def test_a_long_job_waits_for_the_faster_gpu_and_starts_when_it_is_free() -> None:
    made = dense("long", 1000.0)
    assert answered(made) == []
    assert made.job("long").phase == "waiting"
    made.exited("runs", after_ms=50_000)
    made.wake()
    assert [slot.slot.node_id for slot in made.job("long").allocations.values()] == ["fast"]


def test_the_hold_says_until_when_it_waits() -> None:
    made = dense("long", 1000.0)
    message = solve_now(made.state, WORK)
    assert message is not None
    (held,) = only(JobHeld, made.feed(made.an("local", message)))
    assert held.detail["faster_at"] == float(message.waits[0].until)
    assert held.detail["free_gpus"] == 1.0


def test_where_the_release_does_not_come_another_round_decides() -> None:
    made = dense("long", 1000.0)
    answered(made)
    began = made.job("runs").started_at
    due = made.decider.next_wake(made.state)
    assert due is not None and began + 100_000 <= due < began + 101_000


def test_a_short_job_starts_on_the_slow_gpu_at_once() -> None:
    made = dense("short", 5.0)
    placed = answered(made)
    assert made.state.open_round is None
    assert [event.job_id for event in placed] in ([], ["short"])
    assert [slot.slot.node_id for slot in made.job("short").allocations.values()] == ["slow"]


def test_a_job_that_declares_no_run_time_waits_by_the_predicted_one() -> None:
    made = busy()
    ranked = (Ranked(job_id="long", score=0.0, run_s=1000.0),)
    order = QueueRanked(pool="p", base_policy="fcfs", ranked=ranked)
    made.feed(made.an("priority", order))
    made.submit(job("long", gpu_speeds=DENSE), after_ms=1000)
    assert answered(made) == []
    assert made.job("long").phase == "waiting"


def test_without_an_estimate_nothing_is_waited_for() -> None:
    made = dense("unknown", None)
    answered(made)
    assert [slot.slot.node_id for slot in made.job("unknown").allocations.values()] == ["slow"]


def test_a_job_that_waited_as_long_as_the_slow_gpu_costs_waits_no_longer() -> None:
    made = dense("long", 1000.0)
    assert made.state.open_round is not None
    (request,) = instance_for_round(made.state).requests
    (option,) = request.waits
    assert option[0] == 0 and 900 < option[1] < 1000
    answered(made)
    made.now += 9_000_000
    (request,) = taken(made).requests
    assert request.waits == ()


def test_greedys_plan_has_the_waits_of_jobs_that_do_not_fit_in_queue_order() -> None:
    made = busy()
    made.submit(*(job(f"w{n}", gpu_speeds=DENSE, walltime_s=1000.0) for n in range(3)))
    instance = taken(made)
    assert instance.greedy.waits == (Wait(1, 0),)
    result = solve(instance, WORK)
    assert result.objective >= result.greedy


def test_without_declared_speeds_there_are_no_releases() -> None:
    made = busy()
    made.submit(job("plain", walltime_s=1000.0), job("huge", gpus=64))
    instance = taken(made)
    assert (instance.releases, instance.greedy.waits) == ((), ())
    assert RoundPlan().waits == ()
