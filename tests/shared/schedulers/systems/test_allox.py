from __future__ import annotations

from shared.schedulers.hooks import Memory
from shared.schedulers.systems.allox import AlloX
from tests.shared.schedulers.views import job, nodes_of, rates, view


def test_the_fast_type_goes_to_the_job_that_gains_most() -> None:
    jobs = [
        job("a", estimates=rates({"v": 2, "p": 1.9}, left=100)),
        job("b", estimates=rates({"v": 2, "p": 0.5}, left=100)),
    ]
    assert AlloX().shares(view(jobs, nodes_of(v=1, p=1)), {}) == {"a": {"p": 1.0}, "b": {"v": 1.0}}


def test_on_one_gpu_the_shortest_goes_first_and_keeps_it() -> None:
    memory: Memory = {}
    jobs = [job(name, estimates=rates({"v": 1}, left=left)) for name, left in (("a", 50), ("b", 9))]
    assert AlloX().shares(view(jobs, nodes_of(v=1)), memory) == {"a": {}, "b": {"v": 1.0}}
    jobs.append(job("c", estimates=rates({"v": 1}, left=1)))
    later = AlloX().shares(view(jobs, nodes_of(v=1)), memory)
    assert later == {"a": {}, "b": {"v": 1.0}, "c": {}}
    assert AlloX().shares(view([jobs[0]], nodes_of(v=1)), memory) == {"a": {"v": 1.0}}


def test_gangs_are_not_matched() -> None:
    assert AlloX().shares(view([job("a", 2)], nodes_of(v=2)), {}) == {"a": {}}
