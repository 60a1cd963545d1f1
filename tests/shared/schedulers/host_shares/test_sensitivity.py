"""The knee of a measured job, and its speed between the points that were measured."""

from __future__ import annotations

from shared.schedulers.host_shares.sensitivity import PerGpu, Sensitivity

IMAGE = Sensitivity(
    cpu_milli=(1000, 3000, 6000, 9000),
    mem_mib=(20_000, 64_000, 128_000),
    speed=((0.3, 0.4, 0.4), (0.8, 1.0, 1.1), (0.8, 1.6, 2.0), (0.8, 1.6, 2.0)),
)


def test_the_knee_is_the_least_that_gives_full_speed() -> None:
    assert IMAGE.saturating() == PerGpu(6000, 128_000)
    flat = Sensitivity((1000, 3000), (20_000, 64_000), ((1.0, 1.0), (1.0, 1.0)))
    assert flat.saturating() == PerGpu(1000, 20_000)


def test_speed_is_that_of_the_largest_point_within_the_share() -> None:
    assert IMAGE.speed_with(PerGpu(3000, 64_000)) == 1.0
    assert IMAGE.speed_with(PerGpu(5999, 127_999)) == 1.0
    assert IMAGE.speed_with(PerGpu(24_000, 500_000)) == 2.0
    assert IMAGE.speed_with(PerGpu(999, 500_000)) == 0.0
