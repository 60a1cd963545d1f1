"""Observations of simulated agents are folded into the state of the fleet."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.parts.agents.fleet import AgentFleet
from benchmarks.parts.agents.observation import Observation


def fleet_of_two() -> AgentFleet:
    fleet = AgentFleet(2)
    for node in ("a", "b"):
        fleet.note(Observation("session", node, 10.0, 11.0))
        fleet.note(Observation("heartbeat", node, 12.0, 15.0))
    return fleet


def test_a_node_is_connected_by_a_session_and_a_heartbeat_begun_later() -> None:
    fleet = fleet_of_two()
    assert (fleet.connected_since(9.0), fleet.connected_since(11.0)) == (2, 0)
    fleet.note(Observation("session", "a", 20.0, 21.0))
    assert fleet.connected_since(15.0) == 0
    fleet.note(Observation("heartbeat", "a", 22.0, 23.0))
    assert fleet.connected_since(15.0) == 1


async def test_the_time_is_that_of_the_last_acknowledgement() -> None:
    fleet = fleet_of_two()
    waiting = asyncio.ensure_future(fleet.all_connected(15.0, 60.0))
    for node, acknowledged_ms in (("a", 1_015.0), ("b", 2_015.0)):
        fleet.note(Observation("session", node, 20.0, 21.0))
        fleet.note(Observation("heartbeat", node, 22.0, acknowledged_ms))
    assert await waiting == 2.0


async def test_a_wait_has_an_end() -> None:
    with pytest.raises(TimeoutError):
        await fleet_of_two().all_connected(15.0, 0.0)


def test_the_first_go_counts_and_faults_are_counted() -> None:
    fleet = AgentFleet(1)
    for ended_ms in (5.0, 6.0):
        fleet.note(Observation("go", "0/1/0/0", 0.0, ended_ms))
        fleet.note(Observation("fault", "hello: 503", 0.0, 1.0))
    fleet.note(Observation("loop_lag", "", 1.0, 4.0))
    assert fleet.go_ms == {"0/1/0/0": 5.0} and fleet.faults == {"hello: 503": 2}
    assert len(fleet.loop_lags) == 1
