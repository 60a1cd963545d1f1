"""Virtual workers on the clock of a test."""

from __future__ import annotations

from statistics import median

from services.executor.core.virtual.effects import WorkerEnded
from services.executor.core.virtual.injected import NodeSlowdown
from services.executor.core.virtual.workers import MEDIAN_S, SAMPLES, VirtualWorkers, work_s
from shared.contracts.job_spec import Elastic, Simulated
from tests.services.executor.facts import a_spec, worker_spec


def test_cluster_seconds_pass_on_the_time_scale_of_the_pool() -> None:
    workers = VirtualWorkers({})
    workers.prepare(worker_spec("0/1/0/0", a_spec(600)))
    workers.start("0/1/0/0", now_s=100.0, scale=60.0)
    assert workers.next_due_s == 110.0
    assert workers.take_due(109.9) == []
    assert workers.take_due(110.0) == [WorkerEnded("0/1/0/0", 0, 10_000)]
    assert workers.next_due_s is None


def test_ends_come_in_their_order_with_their_codes() -> None:
    workers = VirtualWorkers({})
    failing = a_spec().model_copy(update={"simulated": Simulated(duration_s=1, exit_code=7)})
    for allocation_id, spec in (("a", a_spec(2)), ("b", failing)):
        workers.prepare(worker_spec(allocation_id, spec))
        workers.start(allocation_id, 0.0, 1.0)
    assert [(e.allocation_id, e.exit_code) for e in workers.take_due(5.0)] == [("b", 7), ("a", 0)]


def test_a_stopped_worker_ends_once() -> None:
    workers = VirtualWorkers({})
    workers.prepare(worker_spec("a", a_spec(5)))
    workers.start("a", 0.0, 1.0)
    assert workers.stop("a", 2.0) == WorkerEnded("a", 143, 2000)
    assert workers.take_due(100.0) == []


def test_a_stopped_worker_that_never_ran_has_no_exit_code() -> None:
    workers = VirtualWorkers({})
    workers.prepare(worker_spec("a"))
    assert workers.stop("a", 2.0) == WorkerEnded("a", None)
    assert workers.stop("unknown", 2.0) == WorkerEnded("unknown", None)


def test_saved_work_need_not_be_done_again() -> None:
    workers = VirtualWorkers({})
    workers.prepare(worker_spec("a", a_spec(100), done_s=60.0))
    workers.start("a", 0.0, 10.0)
    assert workers.next_due_s == 4.0


def test_a_gang_is_as_fast_as_the_slowest_of_its_gpu_types() -> None:
    spec = a_spec(120, workers=2).model_copy(update={"gpu_speeds": {"h100": 4.0, "a100": 2.0}})
    for types, takes_s in ((("h100",), 30.0), (("a100", "h100"), 60.0), (("h100", "v100"), 120.0)):
        workers = VirtualWorkers({})
        workers.prepare(worker_spec("a", spec, world_size=2, gpu_types=types))
        workers.start("a", 0.0, 1.0)
        assert workers.next_due_s == takes_s


def test_a_gang_is_as_fast_as_its_links() -> None:
    spec = a_spec(120, workers=2).model_copy(update={"spread_speeds": {"rack": 0.5}})
    for spread, takes_s in ((None, 120.0), ("rack", 240.0), ("spine", 120.0)):
        workers = VirtualWorkers({})
        workers.prepare(worker_spec("a", spec, world_size=2, spread=spread))
        workers.start("a", 0.0, 1.0)
        assert workers.next_due_s == takes_s


def test_workers_of_an_elastic_gang_share_its_work() -> None:
    spec = a_spec(100, workers=2)
    elastic = spec.model_copy(update={"elastic": Elastic(min_workers=1, max_workers=8)})
    for given, takes_s in ((spec, 100.0), (elastic, 25.0)):
        workers = VirtualWorkers({})
        workers.prepare(worker_spec("a", given, world_size=8))
        workers.start("a", 0.0, 1.0)
        assert workers.next_due_s == takes_s


def test_a_restart_comes_before_the_work_and_counts_as_running_time() -> None:
    workers = VirtualWorkers({"n1": 2.0})
    workers.prepare(worker_spec("a", a_spec(100), done_s=60.0, restart_s=20.0))
    workers.start("a", 0.0, 10.0)
    assert workers.next_due_s == 2.0 + 8.0
    assert workers.take_due(10.0) == [WorkerEnded("a", 0, 10_000)]


def test_no_iterations_are_made_during_a_restart() -> None:
    workers = VirtualWorkers({})
    worker = worker_spec("a", a_spec(100), restart_s=20.0, world_size=2, gang_nodes=("n1", "n2"))
    workers.prepare(worker)
    workers.start("a", 0.0, 1.0)
    assert workers.iterations(20.5) == []
    assert [len(times.iteration_s) for times in workers.iterations(23.5)] == [3]


def test_a_gang_is_as_slow_as_its_slowest_worker() -> None:
    workers = VirtualWorkers({"n2": 3.0})
    for node in ("n1", "n2"):
        workers.prepare(
            worker_spec(node, a_spec(10), node=node, world_size=2, gang_nodes=("n1", "n2"))
        )
        workers.start(node, 0.0, 1.0)
    assert {e.allocation_id for e in workers.take_due(29.9)} == set()
    assert {e.allocation_id for e in workers.take_due(30.0)} == {"n1", "n2"}


def test_iteration_times_show_the_slow_worker_and_are_bounded() -> None:
    workers = VirtualWorkers({"n2": 2.0})
    for node in ("n1", "n2"):
        worker = worker_spec(node, a_spec(1000), node=node, world_size=2, gang_nodes=("n1", "n2"))
        workers.prepare(worker)
        workers.start(node, 0.0, 1.0)
    fast, slow = sorted(workers.iterations(20.0), key=lambda times: times.node_id)
    assert fast.steps == slow.steps == tuple(range(10))
    assert 1.9 < median(plain(slow.own_s)) / median(plain(fast.own_s)) < 2.1
    assert 0.9 < median(slow.iteration_s) / median(fast.iteration_s) < 1.1, "they wait for it"
    assert median(plain(fast.wait_s)) > 0.8 > median(plain(slow.wait_s))
    assert workers.iterations(20.5) == []
    assert all(len(t.iteration_s) == SAMPLES for t in workers.iterations(900.0))


def plain(column: tuple[float | None, ...]) -> list[float]:
    return [value for value in column if value is not None]


def test_a_single_worker_reports_iterations_which_become_longer_on_a_slow_node() -> None:
    workers = VirtualWorkers({})
    workers.prepare(worker_spec("a", a_spec(100)))
    workers.start("a", 0.0, 1.0)
    (well,) = workers.iterations(20.0)
    workers.inject({"n1": NodeSlowdown(work=2.0)}, 20.0)
    (slow,) = workers.iterations(40.0)
    assert 0.98 < median(well.iteration_s) < 1.02
    assert 1.96 < median(slow.iteration_s) < 2.04
    assert slow.steps == tuple(range(20, 30))


def test_drawn_durations_depend_on_the_job_alone() -> None:
    drawn = [work_s(f"job-{n}", a_spec(None)) for n in range(2000)]
    assert drawn == [work_s(f"job-{n}", a_spec(None)) for n in range(2000)]
    assert 0.9 < median(drawn) / MEDIAN_S < 1.1


def test_ends_of_stopped_workers_do_not_pile_up() -> None:
    workers = VirtualWorkers({})
    for n in range(5000):
        workers.prepare(worker_spec(str(n), a_spec(1e9)))
        workers.start(str(n), 0.0, 1.0)
        workers.stop(str(n), 0.0)
    assert len(workers._heap) < 1100


def limited(
    walltime_s: float, *, ends: bool = True, done_s: float = 0.0, restart_s: float = 0.0
) -> VirtualWorkers:
    """One worker `a` that has started at 100 s, at 60 cluster seconds a second."""
    workers = VirtualWorkers({}, ends_at_walltime=ends)
    job = a_spec(600.0).model_copy(update={"walltime_s": walltime_s})
    workers.prepare(worker_spec("a", job, done_s=done_s, restart_s=restart_s))
    workers.start("a", 100.0, 60.0)
    return workers


def test_a_start_that_needs_longer_than_its_walltime_ends_then() -> None:
    workers = limited(300.0)
    assert workers.next_due_s == workers.due_s("a") == 105.0
    detail = "the walltime of 300 s is over"
    assert workers.take_due(105.0) == [WorkerEnded("a", 143, 5000, "walltime", detail)]
    assert workers.take_due(1e9) == []


def test_work_that_is_done_at_the_walltime_or_before_ends_by_itself() -> None:
    for walltime_s in (600.0, 601.0):
        assert limited(walltime_s).take_due(1e9) == [WorkerEnded("a", 0, 10_000)]


def test_the_walltime_is_that_of_each_start() -> None:
    later = limited(300.0, done_s=400.0, restart_s=60.0)
    assert later.take_due(1e9) == [WorkerEnded("a", 0, 4333)]


def test_a_slowdown_moves_the_end_of_the_work_alone() -> None:
    workers = limited(900.0)
    workers.inject({"n1": NodeSlowdown(work=2.0)}, 105.0)
    [end] = workers.take_due(1e9)
    assert (end.reason, end.ran_ms) == ("", 15_000), "a tie is an end of the work"
    workers = limited(840.0)
    workers.inject({"n1": NodeSlowdown(work=2.0)}, 105.0)
    [end] = workers.take_due(1e9)
    assert (end.reason, end.ran_ms) == ("walltime", 14_000)
    workers = limited(840.0)
    workers.inject({"n1": NodeSlowdown(work=2.0)}, 105.0)
    workers.inject({}, 105.0)
    assert [(e.reason, e.ran_ms) for e in workers.take_due(1e9)] == [("", 10_000)]


def test_in_a_simulation_the_walltime_ends_nothing() -> None:
    assert limited(300.0, ends=False).take_due(1e9) == [WorkerEnded("a", 0, 10_000)]
