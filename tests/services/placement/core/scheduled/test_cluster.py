"""The view that a pool's scheduler gets."""

from __future__ import annotations

from services.placement.core.scheduled.cluster import cluster_view
from shared.contracts.nodes import CordonNode
from tests.services.placement.core.lane import Lane, job, lane


def seen(pool: Lane) -> set[str]:
    return set(cluster_view(pool.state, pool.now).job_by_id)


def test_jobs_with_whole_gpus_are_seen_and_parts_hold_their_gpu() -> None:
    pool = lane("a", gpus=4)
    pool.run(job("part", 0.5), job("none", 0), job("whole", 2), job("waits", 4))
    view = cluster_view(pool.state, pool.now)
    assert set(view.job_by_id) == {"whole", "waits"}
    assert view.job_by_id["whole"].placement == (("a", 2),)
    assert view.job_by_id["waits"].placement == ()
    assert [node.gpus for node in view.nodes] == [3]


def test_a_job_on_a_cordoned_node_and_the_node_are_left_out() -> None:
    pool = lane("a", "b", gpus=4)
    pool.run(job("one", 4))
    (name,) = pool.nodes_of("one")
    pool.command(CordonNode(node_id=name))
    view = cluster_view(pool.state, pool.now)
    assert "one" not in view.job_by_id
    assert [node.node_id for node in view.nodes] == [{"a": "b", "b": "a"}[name]]


def test_a_job_that_the_pool_could_never_hold_is_left_out() -> None:
    pool = lane("a", gpus=4)
    pool.submit(job("huge", 8), job("fits", 4))
    assert seen(pool) == {"fits"}


def test_a_job_may_not_be_stopped_within_its_residency() -> None:
    pool = lane("a", gpus=4, min_residency_s=300)
    pool.run(job("one", 4))
    early = cluster_view(pool.state, pool.now).job_by_id["one"]
    late = cluster_view(pool.state, pool.now + 301_000).job_by_id["one"]
    assert not early.preemptible
    assert late.preemptible


def test_speeds_are_those_that_the_job_declares_and_elastic_gangs_are_proportional() -> None:
    pool = Lane()
    pool.pool()
    pool.node("a", 4, gpu_type="slow")
    pool.node("b", 4, gpu_type="fast")
    elastic = {"min_workers": 1, "max_workers": 4}
    pool.submit(
        job("plain", 1),
        job("typed", 2, gpu_speeds={"fast": 4.0}),
        job("elastic", 1, workers=2, elastic=elastic),
    )
    jobs = cluster_view(pool.state, pool.now).job_by_id
    assert jobs["plain"].estimates.rates is None
    typed, grown = jobs["typed"].estimates.rates, jobs["elastic"].estimates.rates
    assert typed is not None and grown is not None
    assert [typed.consolidated_rate(name, 2) for name in ("slow", "fast")] == [1.0, 4.0]
    assert [grown.consolidated_rate("slow", gpus) for gpus in (1, 2, 4)] == [0.5, 1.0, 2.0]


def test_the_speeds_of_a_wide_elastic_gang_are_few_numbers() -> None:
    pool = lane("a", gpus=4)
    elastic = {"min_workers": 1, "max_workers": 4096}
    pool.submit(job("wide", 1, workers=2, elastic=elastic))
    rates = cluster_view(pool.state, pool.now).job_by_id["wide"].estimates.rates
    assert rates is not None
    assert len(rates.consolidated) <= 3
    assert [rates.consolidated_rate("a100", gpus) for gpus in (1, 3, 4096)] == [0.5, 1.5, 2048.0]


def test_the_work_that_is_left_is_the_estimate_less_what_ran() -> None:
    pool = lane("a", gpus=4)
    pool.run(job("one", 4, walltime_s=1000, gpu_speeds={"a100": 2.0}))
    view = cluster_view(pool.state, pool.now + 100_000)
    assert view.job_by_id["one"].estimates.work_left == 800.0
    assert view.job_by_id["one"].held_s == 100.0


def test_no_start_outlasts_the_walltime_of_its_job() -> None:
    """On a type of half the speed 800 s of work would be left, and 900 s are until its end."""
    pool = Lane()
    pool.pool()
    pool.node("a", 4, gpu_type="slow")
    pool.run(job("one", 4, walltime_s=1000, gpu_speeds={"slow": 0.5}))
    view = cluster_view(pool.state, pool.now + 100_000)
    assert view.job_by_id["one"].estimates.work_left == 450.0


def test_of_many_waiting_jobs_a_scheduler_sees_the_first_of_the_queue() -> None:
    pool = lane("a", gpus=1)
    pool.submit(*(job(f"j{n}", 1) for n in range(1, 6)))
    pool.rank("j5", "j4", "j3", "j2", "j1")
    view = cluster_view(pool.state, pool.now, most_waiting=2)
    running = {name for name, own in view.job_by_id.items() if own.placement}
    waiting = [name for name in ("j5", "j4", "j3", "j2", "j1") if name not in running]
    assert set(view.job_by_id) == {*running, *waiting[:2]}
