"""Conformance of Decima's world: small sequences by hand, and what holds in each situation."""

from __future__ import annotations

import pytest

from simulator.stage_dags.jobs import Draws, Stage, drawn_jobs
from simulator.stage_dags.picks import critical_path, fifo, sjf_cp, weighted_fair
from simulator.stage_dags.world import (
    Choice,
    Executors,
    OpenJob,
    Pick,
    Situation,
    StageWorld,
    critical_paths,
)
from tests.simulator.stage_dags.stage_samples import job, plain

STILL = Executors(2, move_s=0.0, warm_up_s=0.0)


def test_a_stage_starts_once_its_parents_have_ended() -> None:
    """By the order of stages both executors take the first one, by the critical path one each."""
    one = job(plain(3), plain(1, 31.0), plain(1, 5.0, (0, 1)))
    assert StageWorld([one], fifo, STILL).run().jct_s == [10.0 + 31.0 + 5.0]
    assert StageWorld([one], sjf_cp, STILL).run().jct_s == [31.0 + 5.0]


def test_a_move_and_the_warm_up_are_paid_once_per_executor_and_job() -> None:
    """Each executor moves 2 s and warms up 1 s; its second task and stage cost neither."""
    one = job(plain(4), plain(2, 5.0, (0,)))
    outcome = StageWorld([one], fifo, Executors(2, 2.0, 1.0)).run()
    assert outcome.jct_s == [2.0 + 1.0 + 10.0 + 10.0 + 5.0]
    assert outcome.moves == 2


def test_the_first_wave_takes_longer() -> None:
    one = job(Stage(4, 10.0, 13.0), Stage(1, 1.0, 4.0, (0,)))
    assert StageWorld([one], fifo, STILL).run().jct_s == [13.0 + 10.0 + 4.0]


def test_executors_beyond_the_efficient_ones_slow_tasks_down() -> None:
    own = job(plain(4), efficient=2)
    assert [own.slowdown(count) for count in (1, 2, 4, 6)] == [1.0, 1.0, 1.5, 2.0]
    assert StageWorld([own], fifo, Executors(4, 0.0, 0.0)).run().jct_s == [15.0]


def test_a_task_is_not_kept_for_an_executor_on_its_way() -> None:
    """The one at the job takes the second task at 26 s; the other comes at 31 s for nothing."""
    late = [job(plain(1, 1.0), plain(2, 10.0, (0,)))]
    assert StageWorld(late, fifo, Executors(2, 15.0, 0.0)).run().jct_s == [15.0 + 1.0 + 20.0]


def test_critical_paths_are_of_the_work_ahead() -> None:
    own = job(plain(2), plain(1, 5.0), plain(1, 1.0, (0,)), plain(1, 2.0, (1, 2)))
    assert critical_paths(own) == [23.0, 7.0, 3.0, 2.0]


def none(situation: Situation) -> Choice | None:
    return None


def beyond(situation: Situation) -> Choice | None:
    return Choice(situation.jobs[0], 0, 0)


def blocked(situation: Situation) -> Choice | None:
    return Choice(situation.jobs[0], 1, 2)


def ended(situation: Situation) -> Choice | None:
    return Choice(OpenJob(9, situation.jobs[0].job), 0, 2)


@pytest.mark.parametrize("pick", [none, beyond, blocked, ended])
def test_a_policy_that_moves_no_executor_is_refused(pick: Pick) -> None:
    with pytest.raises(ValueError, match="policy: "):
        StageWorld([job(plain(1), plain(1, 1.0, (0,)))], pick, STILL).run()


@pytest.mark.parametrize(
    "policy", [fifo, sjf_cp, critical_path, weighted_fair(0.0, False), weighted_fair(-1.0, True)]
)
def test_no_executor_is_in_two_places_and_every_task_runs_once(policy: Pick) -> None:
    jobs = drawn_jobs(Draws(3, 12, 6))

    def pick(situation: Situation) -> Choice | None:
        assert situation.free + sum(one.busy for one in situation.jobs) <= situation.executors
        for one in situation.jobs:
            assert one.moving == sum(one.coming)
            assert one.working == sum(one.unfinished) - sum(one.waiting)
            assert min(*one.waiting, one.idle, one.working) >= 0
        return policy(situation)

    outcome = StageWorld(jobs, pick, Executors(6)).run()
    for jct_s, one in zip(outcome.jct_s, jobs, strict=True):
        alone = [stage._replace(tasks=1) for stage in one.stages]
        assert jct_s > max(critical_paths(one._replace(stages=tuple(alone))))
    assert outcome == StageWorld(jobs, policy, Executors(6)).run()
