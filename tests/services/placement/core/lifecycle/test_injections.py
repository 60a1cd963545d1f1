"""Injected faults: only where the pool allows them, and each ends."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.injections import EndInjection, FaultInjected, InjectFault, InjectionEnded
from tests.services.placement.core.lane import Lane, kinds, lane, left, only, registered

SLOW = InjectFault(node_id="a", fault="slow", factor=3.0, for_s=60, reason="drill")


def drilled() -> Lane:
    return lane("a", "b", allow_injection=True)


def test_a_fault_is_injected_until_its_time_is_over() -> None:
    pool = drilled()
    begun = pool.now
    injected, accepted = pool.command(SLOW)
    assert injected == FaultInjected(
        node_id="a", fault="slow", factor=3.0, until=begun + 60_000, reason="drill"
    )
    assert isinstance(accepted, CommandAccepted) and accepted.of == "a"
    assert pool.feed(after_ms=59_999) == []
    assert pool.feed(after_ms=1) == [InjectionEnded(node_id="a", fault="slow", cause="over")]
    assert pool.state.injections == {}


def test_a_wake_ends_it() -> None:
    pool = drilled()
    pool.command(SLOW)
    assert pool.decider.next_wake(pool.state) == pool.now + 60_000
    assert kinds(pool.wake()) == ["InjectionEnded"]
    assert pool.decider.next_wake(pool.state) is None


def test_an_operator_ends_it_before() -> None:
    pool = drilled()
    pool.command(SLOW, "c1")
    ended, accepted = pool.command(EndInjection(node_id="a", reason="enough"), "c2")
    assert ended == InjectionEnded(node_id="a", fault="slow", cause="ended", reason="enough")
    assert isinstance(accepted, CommandAccepted) and not accepted.duplicate
    (again,) = pool.command(EndInjection(node_id="a"), "c3")
    assert isinstance(again, CommandAccepted) and again.duplicate


def test_a_second_fault_replaces_the_first_and_a_repeated_command_has_no_effect() -> None:
    pool = drilled()
    pool.command(SLOW, "c1")
    stop = InjectFault(node_id="a", fault="stop", for_s=5)
    assert kinds(pool.command(stop, "c2")) == ["InjectionEnded", "FaultInjected", "CommandAccepted"]
    assert pool.command(stop, "c2") == []
    assert pool.state.injections["a"].fault == "stop"


@pytest.mark.parametrize(
    ("settings", "fields", "reason"),
    [
        ({}, {}, "injection_not_allowed"),
        ({"allow_injection": True}, {"node_id": "c"}, "unknown_node"),
    ],
)
def test_refusals(settings: dict[str, Any], fields: dict[str, Any], reason: str) -> None:
    pool = lane("a", **settings)
    (refused,) = pool.command(SLOW.model_copy(update=fields))
    assert isinstance(refused, CommandRefused) and refused.reason == reason


def test_a_refusal_names_the_setting_and_its_value() -> None:
    (refused,) = lane("a").command(SLOW)
    assert isinstance(refused, CommandRefused)
    assert "allow_injection of pool p: false; an administrator sets it by" in refused.detail


def test_a_link_cannot_be_slowed_on_a_real_node() -> None:
    pool = Lane()
    pool.pool(backends=("agent",), allow_injection=True)
    pool.report(registered("a", backend="agent", generation=1))
    (refused,) = pool.command(InjectFault(node_id="a", fault="link", for_s=5), "c1")
    assert isinstance(refused, CommandRefused) and refused.reason == "fault_not_possible"
    assert kinds(pool.command(SLOW, "c2")) == ["FaultInjected", "CommandAccepted"]


def test_ending_a_fault_of_an_unknown_node_is_refused() -> None:
    (refused,) = drilled().command(EndInjection(node_id="c"))
    assert isinstance(refused, CommandRefused) and refused.reason == "unknown_node"


def test_it_ends_with_its_node() -> None:
    pool = drilled()
    pool.command(SLOW)
    assert only(InjectionEnded, pool.report(left("a"))) == [
        InjectionEnded(node_id="a", fault="slow", cause="node_lost")
    ]


def test_it_ends_when_the_pool_allows_none_any_more() -> None:
    pool = drilled()
    pool.command(SLOW)
    events = pool.pool(allow_injection=False)
    assert only(InjectionEnded, events) == [
        InjectionEnded(node_id="a", fault="slow", cause="not_allowed")
    ]
