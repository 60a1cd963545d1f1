"""Absences and cordons of recorded nodes by hand."""

from __future__ import annotations

from shared.contracts.nodes import NodeCordoned, NodeJoined, NodeLost, NodeUncordoned
from simulator.recorded.nodes import Absence, NodeChange, RecordedNodes


def joined(node_id: str, gpus: int = 8, unusable: tuple[int, ...] = ()) -> NodeJoined:
    return NodeJoined(
        node_id=node_id,
        incarnation="i",
        executor_id="e",
        backend="virtual",
        gpu_type="a100",
        gpus=gpus,
        cpus=8,
        mem_gib=64,
        unusable_gpus=unusable,
    )


def lost(node_id: str) -> NodeLost:
    return NodeLost(node_id=node_id, incarnation="i", reason="silent")


def history() -> RecordedNodes:
    nodes = RecordedNodes()
    nodes.take(joined("n1"), 100)
    nodes.take(joined("n2"), 400)
    nodes.take(lost("n1"), 700)
    nodes.take(joined("n1"), 900)
    nodes.take(lost("n2"), 1000)
    return nodes


def test_a_node_is_absent_before_it_joins_and_after_it_is_lost() -> None:
    assert sorted(history().absences(), key=str) == sorted(
        [
            Absence("n1", None, 100),
            Absence("n1", 700, 900),
            Absence("n2", None, 400),
            Absence("n2", 1000, None),
        ],
        key=str,
    )


def test_gpus_are_a_mean_over_the_time() -> None:
    """Of 1000 ms n1 is there for 600 and 200, and n2 for 600."""
    assert history().mean_gpus(100, 1100) == 8 * (600 + 200 + 600) / 1000


def test_a_second_loss_of_a_lost_node_changes_nothing() -> None:
    nodes = history()
    nodes.take(lost("n2"), 1050)
    assert Absence("n2", 1000, None) in list(nodes.absences())


def test_cordons_that_hold_at_the_beginning_come_first() -> None:
    nodes = history()
    nodes.take(NodeCordoned(node_id="n1"), 1100)
    nodes.take(NodeCordoned(node_id="n2", draining=True), 1200)
    nodes.take(NodeUncordoned(node_id="n1"), 1300)
    assert list(nodes.cordons(1250)) == [
        NodeChange(1250, "n1", "cordoned"),
        NodeChange(1250, "n2", "draining"),
        NodeChange(1300, "n1", "open"),
    ]
    assert [change.node_id for change in nodes.cordons(1350)] == ["n2"]
    assert nodes.changed_within(1250, 1301) and not nodes.changed_within(1301, 9999)


def test_a_cordon_until_the_node_joins_ends_there() -> None:
    nodes = RecordedNodes()
    nodes.take(joined("n1"), 0)
    nodes.take(NodeCordoned(node_id="n1", until_joined=True), 10)
    nodes.take(joined("n1"), 20)
    assert list(nodes.cordons(30)) == []


def test_gpus_that_are_not_offered_are_none_of_the_node() -> None:
    nodes = RecordedNodes()
    nodes.take(joined("n1", 8, unusable=(0, 7, 9)), 0)
    assert nodes.inventory("p")["n1"].gpus == 6
    assert nodes.mean_gpus(0, 100) == 6
