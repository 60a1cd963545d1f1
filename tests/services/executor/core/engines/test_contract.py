"""A look gives the jobs of one gang in the engine's order."""

from __future__ import annotations

from tests.services.executor.core.engines.looks import IDENTITY, engine_job, observed


def test_the_jobs_of_a_gang_are_those_with_its_identity() -> None:
    look = observed(engine_job(identity="x", ref="1"), engine_job(ref="2"), engine_job(ref="3"))
    assert [job.ref for job in look.jobs_of(IDENTITY)] == ["2", "3"]
    assert look.jobs_of("y") == ()
