"""Jobs that measure nodes: one worker on each, on cordoned ones too, and never beside another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobPreempted
from shared.contracts.base import Event
from shared.contracts.nodes import CordonNode
from shared.contracts.placement import JobHeld, JobPlaced
from tests.services.placement.core.lane import Lane, job, lane

E = TypeVar("E", bound=Event)


def one(kind: type[E], events: Sequence[Event]) -> E:
    (event,) = (event for event in events if isinstance(event, kind))
    return event


def measuring(*nodes: str, name: str = "v", gpus: float = 8, **more: object) -> JobAdmitted:
    made = job(name, gpus, len(nodes))
    spec = made.spec.model_copy(update={"validates": nodes, **more})
    return made.model_copy(update={"spec": spec})


def pool() -> Lane:
    return lane("a", "b", "c", "d")


def test_its_workers_are_on_the_named_nodes_in_their_order() -> None:
    made = pool()
    placed = one(JobPlaced, made.submit(measuring("d", "a", "c")))
    assert [allocation.node_id for allocation in placed.allocations] == ["d", "a", "c"]
    assert placed.validates


def test_a_cordoned_node_is_measured_and_gets_no_other_job() -> None:
    made = pool()
    made.command(CordonNode(node_id="b"))
    made.submit(measuring("b", "c"))
    assert made.nodes_of("v") == ("b", "c")
    made.ready("v")
    made.exited("v")
    made.submit(*(job(name, 8) for name in "wxyz"))
    assert "b" not in {node for name in "wxyz" for node in made.nodes_of(name)}


def test_it_waits_until_each_of_its_nodes_is_free_and_no_job_waits_for_it() -> None:
    made = pool()
    made.pool(queue_mode="easy")
    made.run(*(job(name, 8) for name in "wxy"))
    (first, *_) = made.nodes_of("w")
    free = next(name for name in "abcd" if name not in {made.nodes_of(n)[0] for n in "wxy"})
    held = one(JobHeld, made.submit(measuring(first, free)))
    assert (held.reason, held.detail["workers_that_fit"]) == ("no_capacity", 1.0)
    assert one(JobPlaced, made.submit(job("small", 1), after_ms=200)).job_id == "small"
    made.exited("w")
    made.ready("small")
    made.exited("small", after_ms=500)
    made.wake()
    assert made.nodes_of("v") == (first, free)


def test_of_a_higher_class_it_stops_the_jobs_on_its_nodes_alone() -> None:
    made = pool()
    made.run(*(job(name, 8) for name in "wxyz"))
    targets = (*made.nodes_of("w"), *made.nodes_of("y"))
    made.submit(measuring(*targets, priority_class="system"), after_ms=200)
    stopping = {name for name in "wxyz" if made.job(name).phase == "stopping"}
    assert stopping == {"w", "y"}
    made.stopped("w", "y")
    made.wake()
    assert set(made.nodes_of("v")) == set(targets)


def test_a_node_that_is_gone_holds_it() -> None:
    made = pool()
    assert one(JobHeld, made.submit(measuring("a", "nowhere"))).reason == "no_node_fits"


def test_a_measurement_of_one_job_stops_that_one_and_no_other() -> None:
    made = pool()
    made.run(*(job(name, 8) for name in "wxy"), job("z", 8, preemptible=False))
    of_z, of_w = (measuring(made.nodes_of(j)[0], *made.nodes_of("x"), name=f"v-{j}") for j in "zw")
    for made_job in (of_z, of_w):
        of = made_job.job_id[-1]
        more = {"measures": of, "priority_class": "system"}
        events = made.submit(
            made_job.model_copy(update={"spec": made_job.spec.model_copy(update=more)}),
            after_ms=200,
        )
        assert not any(isinstance(event, JobPreempted) for event in events), of
    own = measuring(*made.nodes_of("w"), name="v")
    spec = own.spec.model_copy(update={"measures": "w", "priority_class": "system"})
    events = made.submit(own.model_copy(update={"spec": spec}), after_ms=200)
    assert one(JobPreempted, events).job_id == "w"


def test_a_placed_job_says_whether_a_measurement_may_stop_it() -> None:
    made = pool()
    for name, more, expected in (
        ("w", {}, True),
        ("x", {"preemptible": False}, False),
        ("y", {"priority_class": "system"}, False),
    ):
        placed = one(JobPlaced, made.submit(job(name, 8, **more), after_ms=200))
        assert placed.preemptible is expected
