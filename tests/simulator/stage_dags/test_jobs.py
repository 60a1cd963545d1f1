from __future__ import annotations

import pytest

from simulator.stage_dags.jobs import Draws, drawn_jobs


def test_a_seed_is_one_sequence_of_jobs() -> None:
    assert drawn_jobs(Draws(1, 5)) == drawn_jobs(Draws(1, 5))
    assert drawn_jobs(Draws(1, 5)) != drawn_jobs(Draws(2, 5))


def test_stages_follow_their_parents_and_lead_to_the_last_one() -> None:
    for job in drawn_jobs(Draws(0, 200)):
        parents = {parent for stage in job.stages for parent in stage.parents}
        assert parents == set(range(len(job.stages) - 1)), "all but the last have a child"
        for number, stage in enumerate(job.stages):
            assert all(parent < number for parent in stage.parents)
            assert stage.first_task_s > stage.task_s > 0
            assert stage.tasks >= 1


def test_arrivals_bring_the_load() -> None:
    jobs = drawn_jobs(Draws(0, 3_000, executors=10, load=0.5))
    work_s = sum(job.work_s() for job in jobs)
    assert work_s / (10 * jobs[-1].submit_s) == pytest.approx(0.5, rel=0.05)
    assert [job.submit_s for job in jobs] == sorted(job.submit_s for job in jobs)
