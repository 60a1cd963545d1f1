"""One live session per node."""

from __future__ import annotations

import pytest

from services.executor.sessions.refusal import Refused
from services.executor.sessions.registry import Session, Sessions, revoked, stopping
from shared.contracts.agents import Incarnation


def session(node_id: str, session_id: str) -> Session:
    return Session(session_id, node_id, "gpu", Incarnation(generation=1, uuid="a" * 32), 1, [])


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
    with pytest.raises(Refused, match="identity has changed"):
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
