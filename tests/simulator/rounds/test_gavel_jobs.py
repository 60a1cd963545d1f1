from __future__ import annotations

import random

import pytest

from simulator.rounds.artifacts import trace_file
from simulator.rounds.gavel_jobs import (
    TRACE,
    TYPES,
    GavelDraws,
    draw_duration_s,
    draw_gang,
    drawn_jobs,
    gavel_nodes,
    models,
    read_rates,
)

PATH = trace_file(TRACE)


def test_models_and_distributions_are_those_of_the_evaluation() -> None:
    assert len(models()) == 26
    rng = random.Random(1)
    gangs = [draw_gang(rng) for _ in range(20_000)]
    for size, share in ((1, 0.70), (2, 0.10), (4, 0.15), (8, 0.05)):
        assert gangs.count(size) / len(gangs) == pytest.approx(share, abs=0.01)
    durations_s = [draw_duration_s(rng) for _ in range(20_000)]
    long = [value for value in durations_s if value > 60_000]
    assert len(long) / len(durations_s) == pytest.approx(0.2, abs=0.01)
    assert 60 * 10**1.5 <= min(durations_s) <= max(durations_s) <= 60 * 10**4


def test_a_node_of_the_sweeps_has_one_gpu() -> None:
    nodes = gavel_nodes((2, 1, 1))
    assert [node.node_id for node in nodes] == ["v100-000", "v100-001", "p100-000", "k80-000"]
    assert {node.gpus for node in nodes} == {1}


@pytest.mark.skipif(PATH is None, reason=f"the trace {TRACE} is not here")
def test_a_job_takes_its_duration_on_the_reference_type() -> None:
    assert PATH is not None
    rates = read_rates(PATH)
    assert {name for name, _ in rates} == {model.name for model in models()}
    jobs = list(drawn_jobs(GavelDraws(42, 4500.0, gangs=True), 50, rates))
    assert [job.submit_s for job in jobs] == sorted(job.submit_s for job in jobs)
    assert {job.gpus for job in jobs} == {1, 2, 4, 8}
    for job in jobs:
        table = job.work.estimates().rates
        assert table is not None
        assert table.consolidated_rate(TYPES[0], job.gpus)
