from __future__ import annotations

from shared.schedulers.compose import propose
from shared.schedulers.systems.fcfs import Fcfs
from tests.shared.schedulers.views import job, nodes_of, on, view


def test_a_job_gets_the_allowed_type_with_most_free_gpus() -> None:
    jobs = [job("a"), job("b", gpu_types=("p",))]
    now = view(jobs, nodes_of(v=4, p=2))
    assert propose(Fcfs(), now, {}).placements == {"a": on("n-v"), "b": on("n-p")}
