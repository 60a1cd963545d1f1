"""Nodes of an engine join once, change where nothing is lost by it, and show others' work."""

from __future__ import annotations

from typing import Any

from services.executor.core.engines.contract import EnginePhase
from services.executor.core.engines.membership import (
    Site,
    problems,
    registrations,
    responding_nodes,
    work_on,
)
from shared.contracts.nodes import NodeLost
from tests.services.executor.core.agents.history import UUID
from tests.services.executor.core.engines.looks import (
    CONFIGURED,
    EngineHistory,
    engine_job,
    engine_joined,
    engine_node,
    observed,
    placed_history,
)

SITE = Site("slurm", "here", "gpu", "e1")
FOREIGN: dict[str, Any] = {
    "identity": "",
    "owner": "Slurm job 9 of eve",
    "ref": "9",
    "nodes": ("n1",),
}


def lane(**fields: Any) -> EngineHistory:
    configured = CONFIGURED.model_copy(update={"release": 1})
    return EngineHistory(configured, engine_joined("n1", **fields), engine_joined("n2"))


def test_a_node_joins_with_a_generation_above_every_earlier_one() -> None:
    joining = list(registrations(SITE, EngineHistory(CONFIGURED).state, observed()))
    assert [(r.node_id, r.generation, r.backend) for r in joining] == [
        ("n1", 1, "slurm"),
        ("n2", 1, "slurm"),
    ]
    again = list(registrations(SITE, EngineHistory(CONFIGURED).state, observed()))
    assert again == joining, "repeated until it has joined, it is one incarnation"
    other = SITE._replace(executor="e2")
    [theirs, _] = registrations(other, EngineHistory(CONFIGURED).state, observed())
    assert theirs.incarnation != joining[0].incarnation


def test_a_joined_node_keeps_its_incarnation_and_a_lost_or_changed_one_joins_anew() -> None:
    assert list(registrations(SITE, lane().state, observed())) == []
    lost = lane()
    lost.add(NodeLost(node_id="n1", incarnation=UUID, reason="declared"))
    [again] = registrations(SITE, lost.state, observed())
    assert (again.node_id, again.generation) == ("n1", 2)
    grown = observed(n1=engine_node("n1", gpus=4))
    [larger] = registrations(SITE, lane().state, grown)
    assert (larger.gpus, larger.generation) == (4, 2)


def test_a_node_with_work_of_berth_or_without_a_sign_of_life_does_not_join_anew() -> None:
    grown = engine_node("n1", gpus=4)
    held = placed_history()
    assert list(registrations(SITE, held.state, observed(n1=grown))) == []
    own = engine_job(nodes=("n1",))
    assert list(registrations(SITE, lane().state, observed(own, n1=grown))) == []
    silent = engine_node("n1", gpus=4, responds=False)
    assert list(registrations(SITE, lane().state, observed(n1=silent))) == []
    assert [node.node_id for node in responding_nodes(lane().state, observed(n1=silent))] == ["n2"]


def test_gpus_of_which_the_engine_shows_a_number_alone_are_the_first() -> None:
    first = engine_job(gpu_counts={"n1": 1}, **FOREIGN)
    second = engine_job(gpu_counts={"n1": 2, "n2": 1}, **{**FOREIGN, "owner": "pod default/b"})
    work = work_on(SITE, observed(first, second), "n1")
    assert work.gpus == (0, 1, 2)
    assert work.words == "GPUs 0: Slurm job 9 of eve; GPUs 1,2: pod default/b"
    known = engine_job(gpus={"n1": (0,)}, **FOREIGN)
    assert work_on(SITE, observed(known, second), "n1").gpus == (0, 1, 2)


def test_gpus_of_others_are_not_offered_and_named() -> None:
    foreign = engine_job(gpus={"n1": (1,)}, **FOREIGN)
    [report] = registrations(SITE, lane().state, observed(foreign))
    assert report.unusable_gpus == (1,)
    assert report.labels["berth.occupied"] == "GPUs 1: Slurm job 9 of eve"
    over = engine_job(EnginePhase.ENDED, gpus={"n1": (1,)}, **FOREIGN)
    [back] = registrations(SITE, lane(unusable_gpus=(1,)).state, observed(over))
    assert back.unusable_gpus == ()
    without_gpus = engine_job(**FOREIGN)
    assert work_on(SITE, observed(without_gpus), "n1").gpus == ()


def test_a_node_with_others_work_beside_berths_own_takes_no_new_work() -> None:
    history = placed_history()
    history.state.release = 1
    foreign = engine_job(gpus={"n1": (1,)}, **FOREIGN)
    [problem] = problems(SITE, history.state, observed(foreign))
    assert (problem.node_id, problem.problem, problem.present) == ("n1", "foreign_work", True)
    assert problem.detail == "GPUs 1: Slurm job 9 of eve"


def test_a_node_that_lost_gpus_under_a_worker_takes_no_new_work_until_it_joins_anew() -> None:
    history = placed_history()
    history.state.release = 1
    fewer = observed(n1=engine_node("n1", gpus=1))
    [problem] = problems(SITE, history.state, fewer)
    assert (problem.node_id, problem.problem) == ("n1", "engine_drained")
    assert problem.detail == "1 of its 2 GPUs are left; it joins anew without workers"
    assert list(problems(SITE, lane().state, fewer)) == [], "without workers it joins anew at once"
    [anew] = registrations(SITE, lane().state, fewer)
    assert anew.gpus == 1


def test_a_drain_of_the_engine_is_a_problem_until_it_is_over() -> None:
    drained = observed(n1=engine_node("n1", drained="Slurm: DRAIN, disk"))
    history = lane()
    [problem] = problems(SITE, history.state, drained)
    assert (problem.problem, problem.detail) == ("engine_drained", "Slurm: DRAIN, disk")
    history.state.nodes["n1"].problems = frozenset({"engine_drained"})
    assert list(problems(SITE, history.state, drained)) == []
    [over] = problems(SITE, history.state, observed())
    assert not over.present
