"""Leases: only what proves that nothing of a node lives releases its GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.attempts import AllocationReleased, JobStarted
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.nodes import (
    DeclareNodeLost,
    NodeHeldBack,
    NodeJoined,
    NodeLost,
    NodeSuspected,
    NodeTermsApplied,
    WorkerStuckNoted,
)
from shared.contracts.reports import NodesSilent, NodeTermsReported, WorkerReady, WorkerStuck
from shared.ledger.decider import Fact
from tests.services.placement.core.lane import (
    Lane,
    exited,
    job,
    kinds,
    lane,
    left,
    only,
    registered,
    stopped,
)

W_MS = 773_750
"""1.25 x (600 + 15) + 5 s, of the default settings."""


def agents(*nodes: str, **settings: Any) -> Lane:
    """A pool of nodes with agents."""
    made = lane(backends=("virtual", "agent"), **settings)
    for name in nodes:
        made.node(name, backend="agent")
    return made


def declare(pool: Lane, node_id: str, *, powered_off: bool = False) -> list[Event]:
    reason = "no power"
    return pool.command(DeclareNodeLost(node_id=node_id, powered_off=powered_off, reason=reason))


def report_terms(pool: Lane, node_id: str) -> list[Event]:
    terms_id = pool.state.terms[-1].agent.terms_id
    incarnation = pool.state.board.nodes[node_id].incarnation
    return pool.report(
        NodeTermsReported(node_id=node_id, incarnation=incarnation, terms_id=terms_id)
    )


# Rule 13: silence, as long as the terms of the ledger say, of the joined incarnation.


def test_a_node_is_suspected_then_lost_when_its_silence_proves_that_nothing_lives() -> None:
    pool = agents("n1")
    pool.run(job("a"))
    assert pool.silent("n1", silent_ms=29_999) == []
    (suspected,) = pool.silent("n1", silent_ms=30_000, offset=7)
    assert isinstance(suspected, NodeSuspected)
    assert (suspected.offset, suspected.lost_after_ms) == (7, W_MS)
    assert kinds(pool.silent("n1", silent_ms=W_MS - 1)) == ["NodeSuspected"]
    assert pool.job("a").phase == "running"
    events = pool.silent("n1", silent_ms=W_MS)
    assert kinds(events)[:3] == ["NodeLost", "JobPreempted", "AllocationReleased"]


def test_nothing_is_released_by_the_time_of_day() -> None:
    """[R22] A clock that jumps a year releases nothing of a node that left or is declared lost."""
    for lose in (lambda pool: pool.report(left("n1")), lambda pool: declare(pool, "n1")):
        pool = agents("n1")
        pool.run(job("a"))
        lose(pool)
        pool.feed(after_ms=365 * 86_400_000)
        assert not only(AllocationReleased, [fact.event for fact in pool.facts])
        assert pool.job("a").allocations
        events = pool.silent("n1", silent_ms=W_MS)
        assert kinds(events)[:2] == ["NodeLost", "AllocationReleased"]


def test_silence_of_another_incarnation_or_of_older_terms_changes_nothing() -> None:
    """[R23]"""
    pool = agents("n1")
    pool.run(job("a"))
    silent = pool.silence_of("n1", W_MS)
    for changed in ({"incarnation": "i0"}, {"terms_id": "0.0"}, {"node_id": "n2"}):
        other = silent.model_copy(update=changed)
        assert pool.feed(pool.an("local", NodesSilent(nodes=(other,)))) == []


def test_raised_terms_count_at_once() -> None:
    """[R21c] A shell that has not folded them yet offers the silence of the old terms."""
    pool = agents("n1", stop_after_s=60.0)
    before = int(pool.state.lost_after_ms(pool.state.board.nodes["n1"]))
    assert before == (1.25 * 75 + 5) * 1000
    pool.pool(backends=("agent",), stop_after_s=600.0)
    assert kinds(pool.silent("n1", silent_ms=before)) == ["NodeSuspected"]


def test_lowered_terms_count_only_when_the_node_has_applied_them() -> None:
    """[R21] and [R21b]: the report begins the count anew, so the silence before it is void."""
    pool = agents("n1")
    pool.run(job("a"))
    silent = pool.silence_of("n1", W_MS - 1)
    pool.pool(backends=("agent",), stop_after_s=60.0)
    node = pool.state.board.nodes["n1"]
    assert pool.state.lost_after_ms(node) == W_MS
    (applied,) = report_terms(pool, "n1")
    assert isinstance(applied, NodeTermsApplied)
    assert pool.state.lost_after_ms(node) == (1.25 * 75 + 5) * 1000
    assert pool.feed(pool.an("local", NodesSilent(nodes=(silent,)))) == []
    assert report_terms(pool, "n1") == [], "a repeat has no effect"


def test_a_report_of_terms_ends_a_suspicion() -> None:
    """It may be read before any heartbeat: then no heartbeat ends the suspicion any more."""
    pool = agents("n1")
    pool.silent("n1", silent_ms=60_000)
    pool.pool(backends=("agent",), stop_after_s=60.0)
    pool.submit(job("a"), after_ms=100)
    assert pool.job("a").phase == "waiting"
    assert kinds(report_terms(pool, "n1")) == ["NodeHeard", "NodeTermsApplied"]
    assert pool.state.board.nodes["n1"].silence is None
    pool.feed(after_ms=100)
    assert pool.job("a").phase == "placed"
    assert pool.heard("n1") == []


def test_terms_that_return_are_other_terms() -> None:
    """A late report of the first terms must not end the ones between."""
    pool = agents("n1")
    first = pool.state.terms[-1].agent.terms_id
    pool.pool(backends=("agent",), stop_after_s="keep")
    pool.pool(backends=("agent",), stop_after_s=600.0)
    late = NodeTermsReported(node_id="n1", incarnation="i1", terms_id=first)
    assert pool.report(late) == []
    assert pool.state.lost_after_ms(pool.state.board.nodes["n1"]) == float("inf")


def test_kept_workers_are_never_released_by_silence() -> None:
    pool = agents("n1", stop_after_s="keep")
    pool.run(job("a"))
    (suspected,) = pool.silent("n1", silent_ms=10**12)
    assert isinstance(suspected, NodeSuspected) and suspected.lost_after_ms is None


def test_a_node_that_joins_under_older_terms_may_use_them() -> None:
    pool = agents(stop_after_s=600.0)
    older = pool.state.terms[-1].agent.terms_id
    pool.pool(backends=("agent",), stop_after_s=60.0)
    pool.node("n1", backend="agent", terms_id=older)
    assert pool.state.lost_after_ms(pool.state.board.nodes["n1"]) == W_MS
    pool.node("n2", backend="agent", terms_id="unknown")
    assert pool.state.lost_after_ms(pool.state.board.nodes["n2"]) == float("inf")


# Rule 15: suspicion.


def test_nothing_new_is_placed_on_a_suspected_node_until_it_is_heard() -> None:
    pool = agents("n1")
    pool.run(job("a"))
    pool.silent("n1", silent_ms=30_000)
    pool.submit(job("b"), after_ms=100)
    assert (pool.job("a").phase, pool.job("b").phase) == ("running", "waiting")
    assert kinds(pool.heard("n1"))[0] == "NodeHeard"
    pool.feed(after_ms=100)
    assert pool.job("b").phase == "placed"
    assert pool.heard("n1") == []


def test_a_count_that_began_anew_replaces_the_silence_in_the_ledger() -> None:
    """[R13] Heartbeats were lost: the next reader must not go on with the long silence."""
    pool = agents("n1")
    pool.silent("n1", silent_ms=500_000)
    (anew,) = pool.silent("n1", silent_ms=0, offset=3)
    assert isinstance(anew, NodeSuspected)
    suspicion = pool.state.board.nodes["n1"].silence
    assert suspicion is not None and suspicion == (0, 3)


# Rules 1 to 3: registrations.


@pytest.mark.parametrize("backend", ["virtual", "agent"])
def test_an_older_registration_is_ignored(backend: str) -> None:
    """[R10] A late repeat of an older registration must not replace the living incarnation."""
    pool = lane(backends=("virtual", "agent"))
    pool.node("n1", incarnation="i2", backend=backend)
    pool.run(job("a"))
    for late in ("i1", "i2"):
        assert pool.report(registered("n1", incarnation=late, backend=backend)) == []
    pool.silent("n1")
    assert pool.report(registered("n1", incarnation="i1", backend=backend)) == []
    assert pool.state.board.nodes == {}


def test_registrations_without_generation_are_those_of_older_executors() -> None:
    old: dict[str, Any] = {"generation": 0, "boot_id": "", "pid_namespace": "", "hardware": ""}
    pool = lane()
    pool.report(registered("n1", incarnation="i1", **old))
    pool.run(job("a"))
    events = pool.report(registered("n1", incarnation="i2", **old))
    assert kinds(events)[:4] == ["NodeLost", "JobPreempted", "AllocationReleased", "JobRequeued"]
    events = pool.report(registered("n1", incarnation="i3"))
    assert "NodeJoined" in kinds(events), "the executor was upgraded"
    assert pool.report(registered("n1", incarnation="i4", **old)) == []
    assert pool.report(registered("n2", incarnation="i1", backend="agent", **old)) == []


@pytest.mark.parametrize(
    "other",
    [
        {"hardware": "another machine"},
        {"hardware": ""},
        {"boot_id": "boot-i1", "pid_namespace": "another"},
        {"boot_id": "boot-i1", "pid_namespace": ""},
        {"boot_id": ""},
    ],
)
def test_another_machine_waits_until_the_older_incarnation_holds_nothing(
    other: dict[str, Any],
) -> None:
    """[R11] The disk was cloned: the original lives."""
    pool = agents("n1")
    pool.run(job("a"))
    clone = registered("n1", incarnation="i2", backend="agent", **other)
    (held,) = pool.report(clone)
    assert isinstance(held, NodeHeldBack) and held.reason == "machine_changed"
    assert pool.report(clone) == [], "a repeat has no effect"
    assert pool.job("a").phase == "running"
    events = pool.silent("n1", silent_ms=W_MS)
    joined = only(NodeJoined, events)
    assert joined == [held.registration]
    assert kinds(events).index("AllocationReleased") < kinds(events).index("NodeJoined")


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"hardware": ""}, {"hardware": ""}),
        ({"pid_namespace": ""}, {"boot_id": "boot-i1", "pid_namespace": ""}),
        ({"boot_id": ""}, {"boot_id": ""}),
        ({"boot_id": ""}, {}),
    ],
)
def test_what_a_registration_lacks_proves_nothing(
    first: dict[str, Any], later: dict[str, Any]
) -> None:
    """[R11] Machines without a board and a driver look alike."""
    pool = agents()
    pool.report(registered("n1", backend="agent", **first))
    pool.run(job("a"))
    events = pool.report(registered("n1", incarnation="i2", backend="agent", **later))
    assert kinds(events) == ["NodeHeldBack"]


def test_another_machine_joins_at_once_where_nothing_is_held() -> None:
    pool = agents("n1")
    clone = registered("n1", incarnation="i2", backend="agent", hardware="another")
    assert kinds(pool.report(clone)) == ["NodeLost", "NodeJoined"]


def test_the_original_may_register_anew_while_a_clone_waits() -> None:
    pool = agents("n1")
    pool.run(job("a"))
    pool.report(registered("n1", incarnation="i2", backend="agent", hardware="clone"))
    again = registered("n1", incarnation="i2", backend="agent")
    assert "NodeJoined" in kinds(pool.report(again))
    assert pool.state.held_back == {} and pool.state.board.nodes["n1"].machine.generation == 2


def test_the_same_boot_and_namespace_prove_the_same_machine() -> None:
    pool = agents("n1")
    pool.run(job("a"))
    again = registered("n1", incarnation="i2", boot_id="boot-i1", backend="agent", hardware="")
    assert "AllocationReleased" in kinds(pool.report(again))


@pytest.mark.parametrize(
    ("before", "after", "is_proof"),
    [
        ("40", "40/abc", True),
        ("40/abc", "40/abc", True),
        ("40/abc", "40/xyz", False),
        ("40/abc", "40", False),
        ("40", "41/abc", False),
        ("", "/abc", False),
    ],
)
def test_the_mark_that_a_node_of_before_gets_is_no_other_machine(
    before: str, after: str, is_proof: bool
) -> None:
    """[R11] An agent with a mark ends what has none, too; not what has another."""
    pool = agents()
    first: dict[str, Any] = {"boot_id": "b", "pid_namespace": before, "hardware": ""}
    pool.report(registered("n1", backend="agent", **first))
    pool.run(job("a"))
    later = {**first, "pid_namespace": after}
    events = pool.report(registered("n1", incarnation="i2", backend="agent", **later))
    assert ("AllocationReleased" in kinds(events)) is is_proof
    assert ("NodeHeldBack" in kinds(events)) is not is_proof


def test_unusable_gpus_are_not_offered() -> None:
    """[R20]"""
    pool = lane(backends=("agent",))
    pool.report(registered("n1", 4, backend="agent", unusable_gpus=(1, 2, 9)))
    pool.run(job("a", 2), job("b", 1))
    held = pool.job("a").allocations.values()
    assert [allocation.slot.gpus for allocation in held] == [(0, 3)]
    assert pool.job("b").phase == "waiting"
    assert pool.state.board.gpus == 2


# Rule 18: an operator's declaration.


def test_a_declared_node_is_stopped_and_its_gpus_stay_held() -> None:
    """[R15]"""
    pool = agents("n1")
    pool.run(job("a"))
    (held,) = pool.ids_of("a")
    events = declare(pool, "n1")
    assert kinds(events) == ["NodeLost", "JobPreempted", "CommandAccepted"]
    assert pool.free("n1")[0] == 0
    pool.submit(job("b"), after_ms=100)
    assert pool.job("b").phase == "waiting"
    assert "AllocationReleased" in kinds(pool.report(stopped(held, "a")))


def test_a_declaration_says_whether_the_node_was_alive_and_why() -> None:
    pool = agents("n1", "n2")
    pool.silent("n2", silent_ms=40_000)
    losses = only(NodeLost, [*declare(pool, "n1"), *declare(pool, "n2")])
    assert [(loss.heard, loss.detail) for loss in losses] == [
        (True, "no power"),
        (False, "no power"),
    ]
    pool = agents("n1")
    pool.run(job("a"))
    pool.silent("n1", silent_ms=70_000)
    (loss,) = only(NodeLost, declare(pool, "n1", powered_off=True))
    assert loss.powered_off and not loss.heard


def test_a_declaration_is_answered_once_more_as_a_duplicate() -> None:
    pool = agents("n1")
    pool.run(job("a"))
    declare(pool, "n1")
    (again,) = declare(pool, "n1")
    assert isinstance(again, CommandAccepted) and again.duplicate


@pytest.mark.parametrize("powered_off", [False, True])
def test_a_node_that_is_gone_is_lost_already_and_one_that_never_joined_unknown(
    powered_off: bool,
) -> None:
    pool = agents("n1")
    declare(pool, "n1")
    assert "n1" not in pool.state.board.nodes
    (again,) = declare(pool, "n1", powered_off=powered_off)
    assert isinstance(again, CommandAccepted) and again.duplicate
    (unknown,) = declare(pool, "n2", powered_off=powered_off)
    assert isinstance(unknown, CommandRefused) and unknown.reason == "unknown_node"


def test_powered_off_releases_at_once_but_not_what_was_just_heard() -> None:
    pool = agents("n1", stop_after_s="keep")
    pool.run(job("a"))
    for silent_ms in (0, 30_000, 59_999):
        if silent_ms:
            pool.silent("n1", silent_ms=silent_ms)
        (refused,) = declare(pool, "n1", powered_off=True)
        assert isinstance(refused, CommandRefused) and refused.reason == "node_heard"
    assert isinstance(refused, CommandRefused)
    assert refused.detail == "silence of n1: 59 s; at least 60 s are allowed"
    pool.silent("n1", silent_ms=60_000)
    events = declare(pool, "n1", powered_off=True)
    assert kinds(events)[:3] == ["NodeLost", "JobPreempted", "CommandAccepted"]
    assert "AllocationReleased" in kinds(events) and pool.state.board.nodes == {}


def test_a_declared_node_may_be_powered_off_later() -> None:
    pool = agents("n1")
    pool.run(job("a"))
    pool.silent("n1", silent_ms=90_000)
    declare(pool, "n1")
    events = declare(pool, "n1", powered_off=True)
    assert kinds(events)[:3] == ["NodeLost", "CommandAccepted", "AllocationReleased"]


# Rules 11, 16, and older ledgers.


def test_half_a_gang_keeps_its_job_from_a_new_start() -> None:
    """[R16]"""
    pool = agents("n1", "n2", "n3", "n4")
    pool.run(job("a", 8, workers=2))
    first, second = pool.nodes_of("a")
    (other,) = [i for i, held in pool.job("a").allocations.items() if held.slot.node_id == second]
    pool.silent(first)
    pool.feed(after_ms=1000)
    assert pool.job("a").phase == "stopping"
    pool.report(exited(other, "a", 143), after_ms=1000)
    pool.feed(after_ms=1000)
    assert pool.job("a").phase == "placed"


def test_a_loss_of_an_older_version_proves_nothing() -> None:
    """They lost a node after one lease, and released its GPUs by the clock after another."""
    pool = lane("n1")
    pool.run(job("a"))
    lost = NodeLost(node_id="n1", incarnation="i1", reason="silent", silent_s=30.1)
    pool.decider.evolve(pool.state, Fact(lost, "placement", 0, 99, 0, pool.now))
    pool.feed(after_ms=10**9)
    assert pool.job("a").allocations
    assert "AllocationReleased" in kinds(pool.silent("n1"))


def test_a_stuck_worker_is_noted_once_and_holds_its_gpus() -> None:
    pool = agents("n1")
    pool.run(job("a"))
    (held,) = pool.ids_of("a")
    report = WorkerStuck(allocation_id=held, job_id="a", detail="1 process in state D")
    (noted,) = pool.report(report)
    assert isinstance(noted, WorkerStuckNoted) and (noted.node_id, noted.tenant) == ("n1", "t")
    assert pool.report(report) == [] and pool.state.stuck == {held: "n1"}
    pool.report(stopped(held, "a"))
    assert pool.state.stuck == {}
    assert pool.report(report) == []


def test_a_gang_meets_at_the_port_of_rank_0() -> None:
    pool = agents("n1")
    pool.submit(job("a", 1, workers=2))
    first, second = pool.ids_of("a")
    pool.report(WorkerReady(allocation_id=first, job_id="a", master_port=29_500))
    (started,) = pool.report(WorkerReady(allocation_id=second, job_id="a", master_port=29_501))
    assert isinstance(started, JobStarted) and started.master_port == 29_500
    pool.submit(job("b", 1, workers=2), after_ms=200)
    both = [
        WorkerReady(allocation_id=name, job_id="b", master_port=30_000 + rank)
        for rank, name in enumerate(pool.ids_of("b"))
    ]
    (started,) = pool.report(*reversed(both))
    assert isinstance(started, JobStarted) and started.master_port == 30_000
