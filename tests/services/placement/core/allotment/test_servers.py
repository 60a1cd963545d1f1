"""Servers count what is put on them, and a job that shrinks does so everywhere."""

from __future__ import annotations

from services.placement.core.allotment.sensitivity import PerGpu
from services.placement.core.allotment.servers import Allotted, AllottedServers, Server

V100 = Server(8, 24_000, 512_000)


def test_the_proportional_share_of_a_gpu() -> None:
    assert V100.fair == PerGpu(3000, 64_000)
    servers = AllottedServers((V100, Server(4, 8_000, 512_000)))
    assert servers.fair_on({0: 1, 1: 1}) == PerGpu(2000, 64_000)


def test_a_job_shrinks_on_all_its_servers_alike() -> None:
    servers = AllottedServers((V100, V100))
    servers.put("a", Allotted({0: 4, 1: 2}, PerGpu(5000, 1000)))
    assert (servers.free_gpus, servers.free_cpu) == ([4, 6], [4_000, 14_000])
    assert servers.room(0, PerGpu(3000, 0)) == 1
    servers.shrink("a", PerGpu(3000, 1000))
    assert servers.free_cpu == [12_000, 18_000]
    assert servers.fullest_first() == [0, 1]
