"""One live session per node."""

from __future__ import annotations

import pytest

from services.executor.agents.refusal import Refused
from services.executor.agents.sessions import LATELY_S, Origin, Session, Sessions, revoked, stopping
from services.executor.core.agents.state import OrderPosition
from shared.contracts.agents import MAX_ORDERS, Incarnation, Order


def session(node_id: str, session_id: str) -> Session:
    incarnation = Incarnation(generation=1, uuid="a" * 32)
    return Session(session_id, node_id, "gpu", incarnation, 1, [], version=f"1.{node_id}")


def status(sessions: Sessions, node_id: str, session_id: str) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        sessions.get(node_id, session_id)
    return refused.value.status, refused.value.problem.reason


def test_a_newer_session_ends_the_older_and_wakes_it() -> None:
    sessions, old, new = Sessions(), session("n1", "old"), session("n1", "new")
    sessions.open(old)
    sessions.open(new)
    assert sessions.get("n1", "new") is new and len(sessions) == 1
    assert status(sessions, "n1", "old") == (409, "unknown_session")
    assert old.wake.is_set()
    with pytest.raises(Refused):
        old.check()


def test_a_session_belongs_to_its_node() -> None:
    sessions = Sessions()
    sessions.open(session("n1", "s1"))
    assert status(sessions, "n2", "s1") == (409, "unknown_session")


def test_sessions_end_for_a_reason() -> None:
    sessions, first, second = Sessions(), session("n1", "s1"), session("n2", "s2")
    sessions.open(first)
    sessions.open(second)
    sessions.end_all(revoked, ("n1", "ghost"))
    with pytest.raises(Refused, match="revoked or replaced; run `berth-agent join --again`"):
        first.check()
    second.check()
    sessions.end_all(stopping)
    with pytest.raises(Refused, match="stopping"):
        second.check()
    assert len(sessions) == 0


def test_only_the_named_nodes_are_woken() -> None:
    sessions, first, second = Sessions(), session("n1", "s1"), session("n2", "s2")
    sessions.open(first)
    sessions.open(second)
    sessions.wake({"n2", "ghost"})
    assert second.wake.is_set() and not first.wake.is_set()


def test_confirmations_are_repeated_until_a_request_shows_that_they_arrived() -> None:
    hello, later = OrderPosition(1, 0), OrderPosition(2, 0)
    confirmation = Order(kind="confirm", position=hello.position, incarnation="a" * 32)
    lost, noted = session("n1", "s1"), session("n2", "s2")
    for one in (lost, noted):
        one.confirmations = [confirmation]
        one.note_request(hello)
        assert one.take_confirmations(hello) == [confirmation]
    lost.note_request(hello)
    assert lost.take_confirmations(hello) == [confirmation]
    assert lost.take_confirmations(hello) == [], "a node without news is not told for ever"
    noted.note_request(later)
    assert noted.confirmations == []


def test_nodes_that_were_heard_lately_are_counted_by_pool_and_version() -> None:
    sessions, first, second = Sessions(), session("n1", "s1"), session("n2", "s2")
    sessions.open(first)
    sessions.open(second)
    assert sessions.count() == {("gpu", "1.n1"): 1, ("gpu", "1.n2"): 1}
    first.heard_s -= LATELY_S + 1
    assert sessions.count() == {("gpu", "1.n2"): 1}
    sessions.get("n1", "s1")
    assert sessions.count() == {("gpu", "1.n1"): 1, ("gpu", "1.n2"): 1}


def test_more_confirmations_than_an_answer_holds_follow_in_the_next_ones() -> None:
    one, at = session("n1", "s1"), OrderPosition(3, 0)
    confirmation = Order(kind="confirm", position=at.position, incarnation="a" * 32)
    one.confirmations = [
        confirmation.model_copy(update={"allocation_id": f"1/{number}/0/0"})
        for number in range(MAX_ORDERS + 1)
    ]
    every = list(one.confirmations)
    assert one.room() == 0
    for expected in (every[:MAX_ORDERS], every[:MAX_ORDERS], every[MAX_ORDERS:]):
        one.note_request(at)
        assert one.take_confirmations(at) == expected
    assert one.room() == MAX_ORDERS - 1
    one.note_request(OrderPosition(4, 0))
    assert one.confirmations == [] and one.room() == MAX_ORDERS


def an_origin(name: str) -> Origin:
    return Origin(process=name, boot_id=name, address=name)


def refused(sessions: Sessions, joined: Incarnation) -> str:
    with pytest.raises(Refused) as refused:
        sessions.check_origin("n1", an_origin("b"), 60.0, joined)
    return refused.value.problem.reason


def test_a_copy_is_known_while_it_tries_again_and_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions, first = Sessions(), session("n1", "s1")
    first.origin = an_origin("a")
    sessions.open(first)
    assert sessions.copy_of(first) is None, "it may have tried before this executor started"
    assert refused(sessions, first.incarnation) == "identity_in_use"
    sessions.get("n1", "s1")
    assert refused(sessions, first.incarnation) == "cloned_identity"
    assert sessions.copy_of(first) == "a has it, b is refused"
    monkeypatch.setattr("services.executor.agents.sessions.COPY_GONE_S", 0.0)
    assert sessions.copy_of(first) == ""


def test_changed_problems_are_reported_now_and_then_however_often_they_change() -> None:
    one = session("n1", "s1")
    assert [one.may_report_problems(now_s) for now_s in (1.0, 2.0, 30.9, 31.0, 31.1)] == [
        True,
        False,
        False,
        True,
        False,
    ]


def test_a_new_session_does_not_report_problems_sooner() -> None:
    sessions, old, new = Sessions(), session("n1", "old"), session("n1", "new")
    sessions.open(old)
    assert old.may_report_problems(1.0)
    sessions.open(new)
    assert not new.may_report_problems(2.0) and new.may_report_problems(31.0)
