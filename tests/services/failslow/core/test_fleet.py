"""Nodes and cordons are counted from the placement ledger, over batches and restarts."""

from __future__ import annotations

from services.failslow.core.decide import FailSlow
from services.failslow.core.fleet import CORDONS_KEPT, Fleet
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.breaker import NodesNoted
from shared.contracts.nodes import NodeCordoned, NodeJoined, NodeLost, NodeUncordoned
from tests.harness.decider import an_input, given, run
from tests.services.failslow.gangs import POOL, placed

FAILSLOW = FailSlow()


def joined(node_id: str) -> NodeJoined:
    return NodeJoined(
        node_id=node_id,
        incarnation="i",
        executor_id="e",
        backend="virtual",
        gpu_type="a100",
        gpus=8,
        cpus=8,
        mem_gib=8,
    )


def lost(node_id: str) -> NodeLost:
    return NodeLost(node_id=node_id, incarnation="i", reason="silent")


def noted(state: FailSlowState, *events: Event) -> list[Event]:
    return run(FAILSLOW, state, [an_input(event, "placement") for event in events])


def test_nodes_join_and_are_lost() -> None:
    state = given(FAILSLOW, POOL)
    (event,) = noted(state, joined("a"), joined("b"), lost("c"))
    assert event == NodesNoted(pool="main", joined=("a", "b"))
    assert noted(state, joined("a")) == []
    noted(state, lost("a"))
    assert list(state.fleet.nodes) == ["b"]


def test_the_last_of_several_changes_in_a_batch_counts() -> None:
    state = given(FAILSLOW, POOL)
    cordoned, lifted = NodeCordoned(node_id="a"), NodeUncordoned(node_id="a")
    assert noted(state, joined("a"), cordoned, lifted) == [NodesNoted(pool="main", joined=("a",))]
    noted(state, cordoned)
    assert state.fleet.out_of_use == {"a"}
    noted(state, lifted, cordoned, lifted)
    assert state.fleet.out_of_use == set()


def test_a_node_that_was_leaving_is_schedulable_when_it_joins_anew() -> None:
    state = given(FAILSLOW, POOL)
    noted(state, joined("a"), NodeCordoned(node_id="a", until_joined=True), lost("a"))
    assert (list(state.fleet.cordoned), list(state.fleet.leaving)) == (["a"], ["a"])
    noted(state, joined("a"))
    assert state.fleet.cordoned == state.fleet.leaving == {}


def test_a_cordon_of_an_operator_replaces_one_that_ends_by_itself() -> None:
    state = given(FAILSLOW, POOL)
    noted(state, joined("a"), NodeCordoned(node_id="a", until_joined=True))
    noted(state, NodeCordoned(node_id="a"))
    noted(state, joined("a"))
    assert list(state.fleet.cordoned) == ["a"]


def test_a_cordon_of_a_lost_node_takes_none_out_of_use() -> None:
    state = given(FAILSLOW, POOL)
    noted(state, joined("a"), NodeCordoned(node_id="a"), lost("a"))
    assert state.fleet.out_of_use == set()


def test_nodes_of_gangs_count_where_their_registration_was_not_read() -> None:
    state = given(FAILSLOW, POOL)
    run(FAILSLOW, state, [placed("j1", workers=2)])
    assert list(state.fleet.nodes) == ["n0", "n1"]


def test_an_order_stands_until_the_node_is_cordoned_or_the_plan_ends() -> None:
    fleet = Fleet()
    fleet.note(NodesNoted(joined=("a", "b", "c"), cordoned=("c",)))
    fleet.order("p", ("a", "b", "c"))
    assert fleet.ordered == {"a": "p", "b": "p"}
    fleet.note(NodesNoted(cordoned=("a",)))
    assert fleet.ordered == {"b": "p"}
    fleet.end_order("p")
    assert fleet.out_of_use == {"a", "c"}


def test_cordons_of_nodes_that_are_gone_are_bounded() -> None:
    fleet = Fleet()
    names = tuple(f"n{number}" for number in range(CORDONS_KEPT + 5))
    fleet.note(NodesNoted(cordoned=names))
    assert list(fleet.cordoned) == list(names[5:])


def test_nodes_that_report_gpus_as_failed_count_for_no_bound() -> None:
    state = given(FAILSLOW, POOL)
    noted(state, joined("a"), joined("b"))
    for reasons in (("gpu_fault",), ("inventory_differs",), ("inventory_differs", "gpu_fault")):
        noted(state, NodeCordoned(node_id="a", until_joined=True, fault_ids=reasons))
        assert state.fleet.out_of_use == set()
    noted(state, NodeCordoned(node_id="a", fault_ids=("j1/1/0/1", "gpu_fault")))
    assert state.fleet.out_of_use == {"a"}
