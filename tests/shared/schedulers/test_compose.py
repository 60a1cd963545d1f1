from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shared.schedulers.compose import changes, propose
from shared.schedulers.hooks import Allotment, Allotments, Hooks, Memory, Placements
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
