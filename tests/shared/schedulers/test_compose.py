from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shared.schedulers.compose import changes, propose, without
from shared.schedulers.hooks import (
    Allotment,
    Allotments,
    Hooks,
    HostShares,
    Memory,
    Neighbours,
    Placements,
)
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.systems.fcfs import Fcfs, StrictFcfs
from shared.schedulers.view import ClusterView, TypedNode
from tests.shared.schedulers.views import job, nodes_of, on, view


def test_the_defaults_serve_in_order_and_pass_over_what_does_not_fit() -> None:
    jobs = [job("a", 2, 1.0), job("b", 4, 2.0), job("c", 1, 3.0)]
    now = view(jobs, nodes_of(v=3))
    assert propose(Fcfs(), now, {}).placements == {"a": on("n-v", 2), "c": on("n-v")}
    assert propose(StrictFcfs(), now, {}).placements == {"a": on("n-v", 2)}


def test_what_runs_keeps_its_gpus() -> None:
    jobs = [job("a", 2, 1.0), job("b", 2, 2.0, placement=on("n-v", 2))]
    proposal = propose(Fcfs(), view(jobs, nodes_of(v=3)), {})
    assert proposal.placements == {"b": on("n-v", 2)}


def test_changes_are_named() -> None:
    class Fixed(Fcfs):
        def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
            return {"a": on("n1", 2), "c": on("n2"), "d": on("n1"), "e": on("n1")}

    jobs = [
        job("a"),
        job("b", placement=on("n1")),
        job("c", placement=on("n1")),
        job("d", 2, placement=on("n1", 2)),
        job("e", placement=on("n1")),
    ]
    nodes = (TypedNode("n1", "v", 8), TypedNode("n2", "v", 8))
    now = view(jobs, nodes)
    assert changes(now, propose(Fixed(), now, {})) == {
        "a": "start",
        "b": "stop",
        "c": "migrate",
        "d": "resize",
    }


class Urgent(Hooks):
    """Places jobs of weight 2 on GPUs of others."""

    name: ClassVar[str] = "urgent"
    source: ClassVar[str] = "a test"

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        ordered = sorted(view.jobs, key=lambda own: not own.is_running)
        return {own.job_id: Allotment("v", own.gpus) for own in ordered}

    def evict(
        self, view: ClusterView, unplaced: Sequence[str], placements: Placements, memory: Memory
    ) -> list[str]:
        urgent = [name for name in unplaced if view.job_by_id[name].weight > 1]
        return [name for name in placements if view.job_by_id[name].weight == 1][: len(urgent)]


def test_victims_make_room_for_what_fits_nowhere() -> None:
    running = job("a", placement=on("n-v"))
    for weight, placed in ((1.0, "a"), (2.0, "b")):
        now = view([running, job("b", weight=weight)], nodes_of(v=1))
        assert set(propose(Urgent(), now, {}).placements) == {placed}


def test_a_job_that_may_not_be_stopped_is_no_part_of_the_decision() -> None:
    kept = job("kept", 2, 9.0, preemptible=False, placement=on("n-v", 2))
    jobs = [job("a", 2, 1.0, placement=on("n-v", 2)), job("b", 1, 2.0), kept]
    placements = propose(Fcfs(), view(jobs, nodes_of(v=5)), {}).placements
    assert placements == {"kept": on("n-v", 2), "a": on("n-v", 2), "b": on("n-v")}


class Sharing(Fcfs):
    """Places the first job, and lets all others have its GPUs."""

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        return {ranked[0]: Allotment("v", 2)}

    def share(self, view: ClusterView, placements: Placements, memory: Memory) -> Neighbours:
        return {first: tuple(own for own in view.job_by_id if own != first) for first in placements}


def test_jobs_that_share_get_the_placement_of_the_first() -> None:
    proposal = propose(Sharing(), view([job("b", 2), job("a", 2)], nodes_of(v=2)), {})
    assert proposal.placements == {"a": on("n-v", 2), "b": on("n-v", 2)}
    assert proposal.groups == (("a", "b"),)
    assert dict(proposal.neighbours) == {"a": ("b",), "b": ("a",)}


def test_a_new_neighbour_is_a_change_and_one_that_leaves_is_none() -> None:
    held = on("n-v", 2)
    together = [
        job("a", 2, placement=held, neighbours=("b",)),
        job("b", 2, placement=held, neighbours=("a",)),
    ]
    now = view(together, nodes_of(v=2))
    assert changes(now, propose(Sharing(), now, {})) == {}
    assert changes(now, propose(StrictFcfs(), now, {})) == {"b": "stop"}
    apart = view([job("a", 2, placement=held), job("b", 2)], nodes_of(v=2))
    assert changes(apart, propose(Sharing(), apart, {})) == {"a": "regroup", "b": "start"}


def test_jobs_that_may_not_be_stopped_stay_together_and_get_no_neighbour() -> None:
    held = on("n-v", 2)
    jobs = [
        job("a", 2, placement=held, neighbours=("b", "c"), preemptible=False),
        job("b", 2, placement=held, neighbours=("a", "c"), preemptible=False),
        job("c", 2, placement=held, neighbours=("a", "b")),
    ]
    proposal = propose(Sharing(), view(jobs, nodes_of(v=4)), {})
    assert proposal.groups == (("a", "b"),)
    assert proposal.placements == {"a": held, "b": held, "c": held}
    assert proposal.neighbours.get("c") is None


def test_jobs_that_stay_hold_the_gpus_of_a_group_once_and_each_its_cores_and_memory() -> None:
    held = on("n1", 2)
    pair = [
        job("a", 2, placement=held, neighbours=("b",), host_share=PerGpu(1_000, 10)),
        job("b", 2, placement=held, neighbours=("a",), host_share=PerGpu(500, 20)),
    ]
    now = view([*pair, job("c")], (TypedNode("n1", "v", 4, "", 0.0, 8_000, 100),))
    rest = without(now, {"a": held, "b": held})
    assert rest.nodes == (TypedNode("n1", "v", 2, "", 0.0, 5_000, 40),)
    assert [own.job_id for own in rest.jobs] == ["c"]


def test_jobs_that_share_gpus_get_cores_and_memory_too() -> None:
    class Even(Sharing):
        def share_hosts(
            self, view: ClusterView, placements: Placements, memory: Memory
        ) -> HostShares:
            return dict.fromkeys(placements, PerGpu(1_000, 10))

    proposal = propose(Even(), view([job("a", 2), job("b", 2)], nodes_of(v=2)), {})
    assert proposal.host_shares == dict.fromkeys("ab", PerGpu(1_000, 10))
