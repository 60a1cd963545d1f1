from __future__ import annotations

import pytest

from shared.performance.rates import RateTable
from simulator.rounds.gavel_jobs import GANG_SIZES, models
from simulator.rounds.mixed_types import MixedTypesOptions, blind_speed, mixed_jobs
from simulator.workload.source import load

RATES = {
    (model.name, gang): RateTable(
        {("v100", gang): 4.0 * gang, ("p100", gang): 2.0 * gang, ("k80", gang): 1.0 * gang}
    )
    for model in models()
    for gang in GANG_SIZES
}


def test_times_are_scaled_to_the_load() -> None:
    trace = load("synthetic:philly", 300, seed=1).jobs
    options = MixedTypesOptions((4, 2, 2), 0.9, 5)
    jobs = mixed_jobs(trace, RATES, options)
    speed = blind_speed(RATES[models()[0].name, 1], 1, options.gpus)
    assert speed == pytest.approx((4 + 2 * 0.5 + 2 * 0.25) / 8)
    work_gpu_s = 0.0
    for job in jobs:
        left = job.work.estimates().work_left
        assert left is not None
        work_gpu_s += left / 4.0 / speed
    span_s = jobs[-1].submit_s - jobs[0].submit_s
    assert work_gpu_s / (8 * span_s) == pytest.approx(0.9)
    assert mixed_jobs(trace, RATES, options)[7].gpus == jobs[7].gpus
