"""The stages of a pipeline are known from what its processes report, where they agree."""

from __future__ import annotations

from typing import Any

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.suspicion.evidence import MOST_PROCESSES
from services.failslow.core.suspicion.pipeline_profiles import PipelineProfiles
from shared.contracts.parallelism import PipelineProfile
from shared.contracts.reports import IterationTimes, TelemetryReported
from tests.harness.decider import given
from tests.services.failslow.gangs import POOL, gang, watched
from tests.services.failslow.paces import pace_change

STATE = given(FailSlow(), POOL, watched(gang()))


def stage(rank: int, step: int = 9, link_s: float = 0.0, **changes: Any) -> IterationTimes:
    columns = {"forward": (0.08,), "backward": (0.16,), "link.pp": (link_s,)}
    return IterationTimes(
        **{
            "job_id": "j1",
            "allocation_id": f"0/9/0/{rank}",
            "node_id": f"n{rank}",
            "rank": rank,
            "iteration_s": (1.0,),
            "steps": (step,),
            "phases": columns,
            "layout": {"pp": rank},
            "microbatches": 8,
            **changes,
        }
    )


def described(*rows: IterationTimes) -> PipelineProfile | None:
    profiles = PipelineProfiles()
    profiles.add(TelemetryReported(executor_id="e", at=1, times=rows), STATE.gangs)
    return profiles.described(pace_change()).pipeline


def test_times_are_per_micro_batch_and_delays_by_hop() -> None:
    profile = described(stage(0), stage(1), stage(2, link_s=0.06), stage(3))
    assert profile == PipelineProfile(
        microbatches=8,
        forward_s=(0.01,) * 4,
        backward_s=(0.02,) * 4,
        weight_s=(0.0,) * 4,
        link_delay_s=(0.0, 0.06, 0.0),
    )


def test_only_iterations_since_the_change_count_for_delays() -> None:
    early = [stage(rank, step=4, link_s=0.01) for rank in range(4)]
    profile = described(*early, *(stage(rank, link_s=0.06) for rank in range(4)))
    assert profile is not None
    assert profile.link_delay_s == (0.06,) * 3


def test_memory_is_known_where_all_stages_name_it() -> None:
    profile = described(stage(0, activations=6), stage(1, link_s=0.1, activations=2**50))
    assert profile is not None
    assert profile.memory == (6, 8)
    partly = described(stage(0, activations=6), stage(1, link_s=0.1))
    assert partly is not None
    assert partly.memory == ()


@pytest.mark.parametrize(
    "last",
    [
        stage(3, link_s=0.06, microbatches=4),
        stage(3, link_s=0.06, microbatches=None),
        stage(3, link_s=0.06, layout={"pp": 7}),
        stage(3, link_s=0.06, layout={"pp": 2**31 - 1}),
        stage(3, link_s=0.06, layout={"dp": 3}),
        stage(3, link_s=0.06, phases={"forward": (0.1,)}),
    ],
)
def test_stages_that_disagree_or_are_missing_make_no_pipeline(last: IterationTimes) -> None:
    profile = described(stage(0, link_s=0.06), stage(1, link_s=0.06), last)
    assert profile is None or len(profile.forward_s) == 2


def test_without_delays_there_is_nothing_to_adapt_to() -> None:
    assert described(*(stage(rank) for rank in range(4))) is None


def test_of_one_worker_so_many_stages_are_followed_as_it_may_have_processes() -> None:
    rows = [stage(0, link_s=0.06, layout={"pp": number}) for number in range(40)]
    profile = described(*rows)
    assert profile is not None
    assert len(profile.forward_s) == MOST_PROCESSES


def test_after_a_resize_the_stages_are_those_of_the_ranks_that_are_left() -> None:
    """It goes on from a checkpoint, so that it counts earlier iterations again."""
    profiles = PipelineProfiles()
    before = tuple(stage(rank, step=90, link_s=0.06) for rank in range(4))
    profiles.add(TelemetryReported(executor_id="e", at=1, times=before), STATE.gangs)
    smaller = given(FailSlow(), POOL, watched(gang(workers=2, attempt=2)))
    after = tuple(stage(rank, step=9, link_s=0.02) for rank in range(2))
    profiles.add(TelemetryReported(executor_id="e", at=2, times=after), smaller.gangs)
    assert profiles.described(pace_change()).pipeline is None
    profile = profiles.described(pace_change(attempt=2)).pipeline
    assert profile is not None
    assert (len(profile.forward_s), profile.link_delay_s) == (2, (0.02,))
