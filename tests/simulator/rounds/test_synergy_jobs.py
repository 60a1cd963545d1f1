from __future__ import annotations

from collections import Counter

import pytest

from shared.performance.footprint import Footprint
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.registry import scheduler_of
from simulator.rounds.synergy_jobs import (
    FAIR,
    MODELS,
    SharedHostWork,
    synergy_jobs,
    synergy_nodes,
    synergy_options,
)
from simulator.rounds.world import RoundsWorld

GPU = Footprint("v100", (1,), 8)


def test_models_keep_the_shares_of_their_classes() -> None:
    jobs = list(synergy_jobs(42, 1_000))
    of_model = Counter(
        next(name for name, own in MODELS.items() if own is job.work.model)
        for job in jobs
        if isinstance(job.work, SharedHostWork)
    )
    assert sum(of_model[name] for name in ("gnmt", "transformer", "lstm")) == 700
    assert (of_model["m5"], of_model["deepspeech"], of_model["alexnet"]) == (50, 50, 40)
    assert jobs[-1].submit_s == pytest.approx(1_000 / 9 * 3600, rel=0.1)


def test_a_job_is_as_fast_as_its_share_and_does_whole_iterations() -> None:
    """ResNet-18 takes 0.64 s an iteration with its part, and is 2.4 times as fast with 9 cores."""
    work = SharedHostWork(2_000, MODELS["res18"])
    work.hold(FAIR)
    assert work.run(GPU, 300.0) == (300.0, False)
    assert work.done == 468
    work.hold(PerGpu(9_000, 62_500))
    work.run(GPU, 300.0)
    assert work.done == 468 + 1_125
    assert work.run(GPU, 300.0) == (300.0, True), "the GPU is held to the end of the round"


def test_each_model_is_at_full_speed_with_what_saturates_it() -> None:
    for model in MODELS.values():
        sensitivity = SharedHostWork(1, model).sensitivity()
        assert sensitivity.saturating() == model.saturating
        assert sensitivity.speed_with(model.saturating) == model.speedup
        assert sensitivity.speed_with(FAIR) == 1.0


def mean_jct_s(scheduler: str) -> float:
    jobs = list(synergy_jobs(1, 60))
    world = RoundsWorld(jobs, synergy_nodes(), scheduler_of(scheduler), synergy_options())
    return world.run().mean_jct_s()


def test_tuned_shares_are_worth_more_than_parts() -> None:
    assert mean_jct_s("synergy") < 0.95 * mean_jct_s("fcfs")
