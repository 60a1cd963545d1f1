"""Nodes count what is put on them, and a job that shrinks does so everywhere."""

from __future__ import annotations

from shared.schedulers.host_shares.node_shares import HeldShares, HostCapacity, HostShare
from shared.schedulers.host_shares.sensitivity import PerGpu

V100 = HostCapacity(8, 24_000, 512_000)


def test_the_proportional_share_of_a_gpu() -> None:
    assert V100.fair == PerGpu(3000, 64_000)
    held = HeldShares((V100, HostCapacity(4, 8_000, 512_000)))
    assert held.fair_on({0: 1, 1: 1}) == PerGpu(2000, 64_000)


def test_a_job_shrinks_on_all_its_nodes_alike() -> None:
    held = HeldShares((V100, V100))
    held.put("a", HostShare({0: 4, 1: 2}, PerGpu(5000, 1000)))
    assert (held.free_gpus, held.free_cpu) == ([4, 6], [4_000, 14_000])
    assert held.room(0, PerGpu(3000, 0)) == 1
    held.shrink("a", PerGpu(3000, 1000))
    assert held.free_cpu == [12_000, 18_000]
    assert held.fullest_first() == [0, 1]
