"""Attributes of a span: what decided, in values that a query can use."""

from __future__ import annotations

from shared.contracts.placement import Allocation, JobHeld, JobPlaced
from shared.ledger.decider import Fact
from shared.telemetry.event_attributes import MAX_NODES, attributes_of
from tests.shared.telemetry.conftest import placed


def of_placed(**changes: object) -> dict[str, object]:
    fact = placed()
    return dict(attributes_of(fact._replace(event=fact.event.model_copy(update=changes))))


def test_the_decision_is_the_record_and_the_event_a_part_of_it() -> None:
    fact = placed()
    attributes = attributes_of(fact)
    assert attributes["event.id"] == fact.id
    assert fact.id == f"{attributes['decision.id']}/{fact.index}"
    assert attributes["cause.id"] == fact.cause
    assert "cause.id" not in attributes_of(fact._replace(cause=""))


def test_a_reason_in_free_text_is_left_out() -> None:
    event = JobHeld(job_id="j1", tenant="vision", reason="no_capacity", short_gpus=8)
    fact = Fact(event, "placement", 2, 8, 1, 1_000, "", "")
    assert attributes_of(fact)["decision.reason"] == "no_capacity"
    text = event.model_copy(update={"reason": "patient 17 needs it"})
    assert "decision.reason" not in attributes_of(fact._replace(event=text))


def test_nodes_of_a_gang_are_named_once_each_and_at_most_some() -> None:
    ranks = range(2 * MAX_NODES + 2)
    gang = tuple(Allocation(rank=rank, node_id=f"n{rank // 2}", gpus=(0,)) for rank in ranks)
    assert of_placed(allocations=gang[:4])["decision.nodes"] == "n0,n1"
    nodes = str(of_placed(allocations=gang)["decision.nodes"]).split(",")
    assert nodes == [f"n{number}" for number in range(MAX_NODES)]


def test_counts_are_whole_numbers_and_positions_begin_at_one() -> None:
    terms = {"position": 0.0, "waiting": 12.0, "objective": 1.5, "age_s": 3.0}
    attributes = of_placed(terms=terms)
    assert attributes["decision.position"] == 1
    assert repr(attributes["decision.waiting"]) == "12"
    assert attributes["decision.objective"] == 1.5
    assert attributes["event.type"] == JobPlaced.TYPE and "decision.age_s" not in attributes
