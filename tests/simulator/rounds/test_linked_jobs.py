from __future__ import annotations

import pytest

from shared.performance.links import Link, TieredLinks
from simulator.rounds.linked_jobs import COMPUTE_S, OVERLAP, PARAMETERS, RackedCluster, linked_jobs
from simulator.rounds.linked_work import LinkedWork
from simulator.workload.source import load

LINK = Link(1e-6, 1e9)
CLUSTER = RackedCluster(2, 2, 8, TieredLinks(LINK, LINK, LINK))


def test_nodes_name_their_racks() -> None:
    assert [(node.node_id, node.gpus, node.rack) for node in CLUSTER.nodes()] == [
        ("r0-n0", 8, "r0"),
        ("r0-n1", 8, "r0"),
        ("r1-n0", 8, "r1"),
        ("r1-n1", 8, "r1"),
    ]
    assert CLUSTER.gpus == 32


def test_times_are_scaled_to_the_load_and_a_seed_repeats() -> None:
    trace = load("synthetic:philly", 300, seed=1).jobs
    jobs = linked_jobs(trace, CLUSTER, 0.7, 5)
    work_gpu_s = 0.0
    for job in jobs:
        assert isinstance(job.work, LinkedWork)
        steps = job.work.steps
        assert COMPUTE_S[0] <= steps.compute_s <= COMPUTE_S[1]
        assert steps.gradient_bytes / 4 in PARAMETERS.values()
        assert steps.overlap == OVERLAP
        assert job.gpus <= CLUSTER.gpus // 2
        work_gpu_s += job.gpus * job.work.total * steps.compute_s
    span_s = jobs[-1].submit_s - jobs[0].submit_s
    assert work_gpu_s / (CLUSTER.gpus * span_s) == pytest.approx(0.7)
    again = linked_jobs(trace, CLUSTER, 0.7, 5)
    assert [job.work.estimates().steps for job in again] == [
        job.work.estimates().steps for job in jobs
    ]
