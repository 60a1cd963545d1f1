from __future__ import annotations

import pytest

from shared.performance.links import GangSteps, Link, LinkTier, TieredLinks, all_reduce_s

LINKS = TieredLinks(Link(0.0, 100.0), Link(0.5, 10.0), None)


def test_a_ring_sends_each_part_twice_around() -> None:
    """Four GPUs: six turns, each of a latency and a quarter of the bytes."""
    assert all_reduce_s(4, 40.0, Link(0.5, 10.0)) == 6 * (0.5 + 1.0)
    assert all_reduce_s(1, 40.0, Link(0.5, 10.0)) == 0.0


def test_large_messages_cost_bandwidth_and_small_ones_latency() -> None:
    link = Link(1e-3, 1e9)
    assert all_reduce_s(64, 1e12, link) == pytest.approx(2 * 63 / 64 * 1e12 / 1e9, rel=1e-3)
    assert all_reduce_s(64, 1.0, link) == pytest.approx(2 * 63 * 1e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("gpus", "tier", "seconds"),
    [
        (1, LinkTier.SPINE, 2.0),
        (2, LinkTier.NODE, 2.0 + 0.4),
        (2, LinkTier.RACK, 2.0 + 5.0),
        (2, LinkTier.SPINE, None),
    ],
)
def test_an_unknown_link_makes_steps_unknown(
    gpus: int, tier: LinkTier, seconds: float | None
) -> None:
    assert GangSteps(2.0, 40.0, LINKS).step_s(gpus, tier) == seconds


def test_communication_hides_behind_a_part_of_the_computation() -> None:
    steps = GangSteps(2.0, 40.0, LINKS, overlap=0.5)
    assert steps.step_s(2, LinkTier.NODE) == 2.0
    assert steps.step_s(2, LinkTier.RACK) == 2.0 + 5.0 - 1.0


def test_a_slowdown_is_relative_to_a_closer_tier() -> None:
    steps = GangSteps(2.0, 40.0, LINKS, overlap=0.5)
    assert steps.slowdown(2, LinkTier.RACK, LinkTier.NODE) == 3.0
    assert steps.slowdown(2, LinkTier.SPINE, LinkTier.NODE) is None
    assert steps.slowdown(1, LinkTier.SPINE, LinkTier.NODE) == 1.0
