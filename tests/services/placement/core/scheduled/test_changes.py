"""Running jobs whose nodes are others than their scheduler chose: they move, or stop for it."""

from __future__ import annotations

from services.placement.core.pool.trial import Trial
from services.placement.core.round.view import view_of
from services.placement.core.scheduled.changes import differs, leaving_nodes
from services.placement.core.scheduled.cluster import cluster_view
from shared.contracts.attempts import JobMigrated, JobPreempted, JobResized
from shared.contracts.placement import JobHeld, JobPlaced
from shared.contracts.schedules import GpusAllotted
from tests.services.placement.core.lane import job, lane, only
from tests.services.placement.core.scheduled.choosing import choosing, two_nodes, workers_on
from tests.services.placement.core.scheduled.pools import next_round


def test_a_job_moves_to_the_nodes_that_were_chosen_since_and_stays_there() -> None:
    with choosing(one=(("a", 2),)) as chosen:
        pool = two_nodes()
        pool.run(job("one", 2, checkpoint_interval_s=60))
        chosen["one"] = (("b", 2),)
        (moved,) = only(JobMigrated, next_round(pool))
        assert (moved.reason, moved.from_nodes, moved.to_nodes) == ("scheduled", ("a",), ("b",))
        seen = {node.node_id: node.gpus for node in cluster_view(pool.state, pool.now).nodes}
        assert seen == {"a": 4, "b": 2}, "what is reserved for it is no other job's"
        (placed,) = only(JobPlaced, pool.stopped("one"))
        assert (placed.policy, workers_on(pool, "one")) == ("kept", {"b": 1})
        pool.ready("one")
        assert only(JobMigrated, next_round(pool)) == []
    assert pool.job("one").phase == "running"


def test_a_job_on_its_way_is_allotted_what_is_reserved_for_it() -> None:
    with choosing(one=(("a", 2),)) as chosen:
        pool = two_nodes()
        pool.run(job("one", 2), job("two", 1))
        chosen["one"] = (("b", 2),)
        next_round(pool)
        (proposal,) = only(GpusAllotted, next_round(pool))
    (own,) = proposal.allotted
    assert (own.job_id, own.workers, own.nodes) == ("one", 1, ())


def test_two_jobs_that_change_their_nodes_stop_and_start_on_them() -> None:
    with choosing(one=(("a", 4),), two=(("b", 4),)) as chosen:
        pool = two_nodes()
        pool.run(job("one", 4), job("two", 4))
        chosen.update(one=(("b", 4),), two=(("a", 4),))
        stops = only(JobPreempted, next_round(pool))
        assert {stop.job_id for stop in stops} == {"one", "two"}
        first = pool.stopped("one") + pool.wake()
        assert only(JobPlaced, first) == [], "it waits for the node that was chosen for it"
        (held,) = [event for event in only(JobHeld, first) if event.job_id == "one"]
        assert held.detail["chosen_nodes"] == "b"
        pool.stopped("two")
        pool.wake()
    assert (workers_on(pool, "one"), workers_on(pool, "two")) == ({"b": 1}, {"a": 1})


def test_a_job_stays_where_it_is_if_its_chosen_nodes_cannot_have_it() -> None:
    with choosing(one=(("a", 2),)) as chosen:
        pool = two_nodes()
        pool.run(job("part", 0.5, mem_gib=2040), job("one", 2, mem_gib=40))
        assert workers_on(pool, "one") == {"b": 1}, "the memory of the chosen node is taken"
        for _ in range(2):
            assert only(JobMigrated, next_round(pool)) == []
        chosen["one"] = (("b", 2),)
        next_round(pool)
    assert pool.job("one").phase == "running"


def test_an_elastic_job_is_resized_on_its_chosen_nodes() -> None:
    with choosing(one=(("a", 1),)) as chosen:
        pool = two_nodes()
        pool.run(job("one", 1, elastic={"min_workers": 1, "max_workers": 4}))
        chosen["one"] = (("a", 1), ("b", 2))
        (resized,) = only(JobResized, next_round(pool))
        assert resized.to_workers == 3
        pool.stopped("one")
    assert workers_on(pool, "one") == {"a": 1, "b": 2}


def test_a_job_within_its_residency_leaves_no_node() -> None:
    with choosing(one=(("a", 2),)) as chosen:
        pool = two_nodes(min_residency_s=10_000)
        pool.run(job("one", 2))
        chosen["one"] = (("b", 2),)
        next_round(pool)
    view = view_of(pool.state, pool.now)
    assert not differs(pool.state, view, pool.job("one"))
    with Trial(view.board) as trial:
        assert leaving_nodes(pool.state, view, trial) == {}


def test_a_job_that_cannot_move_keeps_no_other_waiting_for_its_node() -> None:
    """The memory of node a is taken, which the scheduler does not see: one job stays on b, and the
    job that was given b starts on c, where the pool has room."""
    with choosing(one=(("b", 3),)) as chosen:
        pool = lane("a", "b", "c", gpus=4, scheduler="chooses", min_residency_s=0)
        pool.run(job("part", 0.5, mem_gib=2040), job("one", 3, mem_gib=40))
        assert (pool.nodes_of("part"), workers_on(pool, "one")) == (("a",), {"b": 1})
        chosen.update(one=(("a", 3),), two=(("b", 3),))
        pool.submit(job("two", 3, mem_gib=40))
        events = next_round(pool)
    assert not only(JobMigrated, events) and not only(JobPreempted, events)
    assert (workers_on(pool, "one"), workers_on(pool, "two")) == ({"b": 1}, {"c": 1})
