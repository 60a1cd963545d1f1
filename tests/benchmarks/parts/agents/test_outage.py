"""The return of the agents follows from their heartbeats: how many, how soon, under which lease."""

from __future__ import annotations

from benchmarks.parts.agents.fleet import AgentFleet
from benchmarks.parts.agents.observation import Observation
from benchmarks.parts.agents.outage import describe_return

HEALED_MS, LEASE_S = 60_000.0, 60.0


def heartbeat(fleet: AgentFleet, node: str, begun_ms: float, ended_ms: float) -> None:
    fleet.note(Observation("session", node, begun_ms - 1, begun_ms))
    fleet.note(Observation("heartbeat", node, begun_ms, ended_ms))


def fleet_of_two() -> AgentFleet:
    fleet = AgentFleet(2)
    heartbeat(fleet, "a", 5_000.0, 5_100.0)
    heartbeat(fleet, "b", 4_000.0, 4_100.0)
    return fleet


def test_agents_that_are_back_within_their_lease_are_not_fenced() -> None:
    fleet = fleet_of_two()
    heartbeat(fleet, "a", 61_500.0, 61_600.0)
    heartbeat(fleet, "b", 63_000.0, 63_400.0)
    figures = describe_return(fleet, HEALED_MS, LEASE_S)
    assert (figures["back"], figures["fenced"]) == (2, 0)
    assert (figures["back_s"], figures["reconnect_s"]) == (1.6, 1.8)
    assert figures["longest_unrenewed_s"] == 59.4


def test_a_lease_that_passed_between_two_heartbeats_is_lost() -> None:
    fleet = fleet_of_two()
    heartbeat(fleet, "a", 64_900.0, 65_000.0)
    heartbeat(fleet, "b", 63_000.0, 63_400.0)
    assert describe_return(fleet, HEALED_MS, LEASE_S)["fenced"] == 1


def test_an_agent_that_is_not_back_or_was_fenced_counts() -> None:
    fleet = fleet_of_two()
    heartbeat(fleet, "a", 61_500.0, 61_600.0)
    fleet.note(Observation("fault", "hello: fence", 0.0, 0.0))
    figures = describe_return(fleet, HEALED_MS, LEASE_S)
    assert (figures["back"], figures["fenced"], figures["reconnect_s"]) == (1, 2, None)
