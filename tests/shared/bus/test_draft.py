from __future__ import annotations

from shared.bus.draft import Draft, build_record, draft_facts
from shared.contracts.jobs import CancelJob
from shared.ledger.decider import Input
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor, Reader
from shared.testing.ledger import ALARM, SeatDecider, Seats

LEDGER = TP("admission", 3)
NOW = 1_700_000_000_000
TRACE = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def cancel(id: str, job_id: str = "job", **fields: str) -> Input:
    return Input("commands", id, CancelJob(job_id=job_id), **fields)  # type: ignore[arg-type]


def draft(state: Seats, *inputs: Input, now: int = NOW, seq: int = 1) -> Draft:
    return draft_facts(SeatDecider(), state, inputs, now, LEDGER, seq)


def test_each_decision_is_folded_before_the_next_one() -> None:
    state = Seats()
    facts = draft(state, *(cancel(f"c{n}") for n in range(20))).facts
    assert len(state.taken) == len(facts) == 20
    assert state.problems() == []


def test_the_facts_have_the_place_and_the_time_of_their_record() -> None:
    facts = draft(Seats(), cancel("a"), cancel("b"), seq=7).facts
    assert [(fact.place, fact.cause, fact.at) for fact in facts] == [
        ("3/7/0", "a", NOW),
        ("3/7/1", "b", NOW),
    ]


def test_without_inputs_and_wakes_there_are_no_facts() -> None:
    assert draft(Seats()) == Draft(NOW, [], [])


def test_a_wake_is_decided_once_it_is_due() -> None:
    state = Seats(wake_at=NOW)
    assert draft(state, now=NOW - 1).facts == []
    (fact,) = draft(state, now=NOW).facts
    assert (fact.event.of, state.wake_at) == ("wake", None)  # type: ignore[attr-defined]


def test_a_wake_is_decided_after_the_inputs_and_sees_their_effect() -> None:
    state = Seats()
    assert [fact.cause for fact in draft(state, cancel("a", job_id=ALARM)).facts] == ["a"]
    facts = draft(state, cancel("b"), now=NOW + 1).facts
    assert [fact.event.of for fact in facts] == ["job", "wake"]  # type: ignore[attr-defined]


def test_a_fact_has_a_span_of_its_own_only_if_its_cause_has_one() -> None:
    drafted = draft(Seats(), cancel("a", traceparent=TRACE), cancel("b"))
    traced, untraced = drafted.facts
    assert drafted.parents == [TRACE, ""]
    assert len(traced.traceparent) == len(TRACE) and traced.traceparent != TRACE
    assert untraced.traceparent == ""


def test_the_record_is_accepted_behind_its_cursor_and_has_the_facts() -> None:
    reader = Reader(*LEDGER, Cursor(5, 2, "last", 4, NOW, {"commands-3": 1}))
    drafted = draft(Seats(), cancel("a", traceparent=TRACE), seq=3)
    record = build_record(drafted, reader.cursor, {"commands-3": 2}, id="new", writer="w")
    accepted = reader.offer_record(5, record)
    assert accepted is not None
    assert accepted.facts(own=True) == drafted.facts
    assert reader.cursor == Cursor(6, 3, "new", 5, NOW, {"commands-3": 2})
