"""Agents that know them get orders to inject, with the time that is left."""

from __future__ import annotations

import pytest

from services.executor.core.agents.injection import NO_INJECTION, injection_of
from services.executor.core.agents.orders import orders
from services.executor.core.agents.state import OrderPosition
from shared.contracts.agents import Injection
from shared.contracts.injections import FaultInjected, InjectedKind, InjectionEnded
from shared.contracts.nodes import NodeLost
from tests.services.executor.core.agents.history import UUID, History, joined, running

OVER = InjectionEnded(node_id="n1", fault="slow", cause="ended")


def injected(fault: InjectedKind = "slow") -> FaultInjected:
    return FaultInjected(node_id="n1", fault=fault, factor=2.5, until=61_000)


def inject_orders(history: History, node_id: str = "n1") -> int:
    listed = orders(history.state, node_id, OrderPosition()).orders
    return sum(order.kind == "inject" for order in listed)


def test_a_node_is_ordered_its_own_fault_and_its_end() -> None:
    history = running()
    assert history.add(injected()) == {"n1"}
    assert (inject_orders(history), inject_orders(history, "n2")) == (1, 0)
    node = history.state.nodes["n1"]
    assert injection_of(node, 1_000) == Injection(fault="slow", factor=2.5, left_s=60)
    history.add(OVER)
    assert (inject_orders(history), injection_of(node, 1_000)) == (1, NO_INJECTION)


def test_an_order_that_comes_late_injects_nothing() -> None:
    history = running()
    history.add(injected())
    assert injection_of(history.state.nodes["n1"], 61_000) == NO_INJECTION
    assert injection_of(None, 0) == NO_INJECTION


def test_a_link_is_no_matter_of_an_agent() -> None:
    history = running()
    history.add(injected("link"))
    assert injection_of(history.state.nodes["n1"], 1_000) == NO_INJECTION


@pytest.mark.parametrize(
    "event", [NodeLost(node_id="n1", incarnation=UUID, reason="silent"), joined("n1", "c" * 32)]
)
def test_a_node_that_is_lost_or_begins_anew_gets_none(event: NodeLost) -> None:
    history = running()
    history.add(injected())
    history.add(event)
    assert inject_orders(history) == 0


def test_the_fault_of_an_unknown_node_is_ignored() -> None:
    history = History()
    assert history.add(injected(), OVER) == set()
