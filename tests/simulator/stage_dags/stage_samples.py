"""Jobs of stages for tests."""

from __future__ import annotations

from simulator.stage_dags.jobs import Stage, StageJob


def plain(tasks: int, task_s: float = 10.0, parents: tuple[int, ...] = ()) -> Stage:
    """Return a stage of which the first tasks take as long as the others."""
    return Stage(tasks, task_s, task_s, parents)


def job(*stages: Stage, submit_s: float = 0.0, efficient: int = 100) -> StageJob:
    return StageJob(submit_s, stages, efficient)
