from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from shared.bus.inputs.gather import Batch
from shared.bus.inputs.inbox import PendingRecord
from shared.bus.lane.draft import MAX_EVENTS, Draft, build_record, draft_facts
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_commands import CancelJob
from shared.ledger.decider import Decision, Input, UnitStart, WakeStart
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor, Reader
from tests.harness.ledger import ALARM, SeatDecider, Seats

LEDGER = TP("admission", 3)
NOW = 1_700_000_000_000
TRACE = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def cancel(id: str, job_id: str = "job", **fields: str) -> Input:
    return Input("commands", id, CancelJob(job_id=job_id), **fields)  # type: ignore[arg-type]


def draft(state: Seats, *inputs: Input, now: int = NOW, seq: int = 1) -> Draft:
    drafted = Draft(now)
    draft_facts(SeatDecider(), state, batch_of(*inputs), drafted, LEDGER, seq)
    return drafted


def batch_of(*inputs: Input) -> Batch:
    """Return a batch with a record per input."""
    return Batch(
        [], [PendingRecord("commands-3", n, n + 1, (item,), 10, 0) for n, item in enumerate(inputs)]
    )


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
    assert draft(Seats()) == Draft(NOW)


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


class Countdown(SeatDecider):
    """Answers each command once per seat up to the number in its reason, in units of one event.

    An input that is decided again goes on where its answer ended. A wake gives `wake_at` seats.
    """

    def decide(self, state: Seats, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            assert isinstance(item.message, CancelJob)
            for n in range(int(item.message.reason)):
                if f"{item.id}+{n}" not in state.answers:
                    yield UnitStart(*item.decision(seat(f"{item.id}+{n}", state)))
        while len(state.taken) < (state.wake_at or 0):
            yield WakeStart(seat(f"wake {len(state.taken)}", state))

    def next_wake(self, state: Seats) -> int | None:
        return NOW if len(state.taken) < (state.wake_at or 0) else None


def seat(id: str, state: Seats) -> CommandAccepted:
    return CommandAccepted(command_id=id, command_type=str(len(state.taken)))


def counted(state: Seats, batch: Batch) -> Draft:
    drafted = Draft(NOW)
    draft_facts(Countdown(), state, batch, drafted, LEDGER, 1)
    return drafted


def count_to(id: str, most: int) -> Input:
    return Input("commands", id, CancelJob(job_id="job", reason=str(most)))


def test_a_full_record_ends_before_a_unit_and_its_input_is_decided_again() -> None:
    state, batch = Seats(), batch_of(count_to("a", 3), count_to("b", 2 * MAX_EVENTS))
    first = counted(state, batch)
    assert len(first.facts) == MAX_EVENTS
    assert first.used == Batch([], batch.records[:1])
    rest = Batch([], batch.records[1:])
    second = counted(state, rest)
    assert (len(second.facts), second.used) == (MAX_EVENTS, Batch([], []))
    last = counted(state, rest)
    assert (len(last.facts), last.used) == (3, None)
    assert state.problems() == []


def test_a_record_is_full_by_its_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.bus.lane.draft.MAX_BYTES", 1_000)
    drafted = counted(Seats(), batch_of(count_to("a", 100)))
    assert 1_000 <= drafted.size < 1_500 and drafted.used is not None
    record = build_record(drafted, Cursor(), {}, id="new", writer="w")
    assert len(bytes(record.ev)) == pytest.approx(drafted.size, rel=0.2)


def test_a_record_of_several_inputs_is_decided_whole() -> None:
    inputs = (count_to("a", 1), count_to("b", 2 * MAX_EVENTS))
    drafted = counted(Seats(), Batch([], [PendingRecord("commands-3", 0, 1, inputs, 10, 0)]))
    assert len(drafted.facts) == 1 + 2 * MAX_EVENTS and drafted.used is None


def test_a_wake_goes_on_in_the_next_record_with_its_inputs_used_up() -> None:
    state, batch = Seats(wake_at=MAX_EVENTS + 5), batch_of(count_to("a", 1))
    first = counted(state, batch)
    assert (len(first.facts), first.used) == (MAX_EVENTS, batch)
    assert len(counted(state, Batch([], [])).facts) == 5
    assert Countdown().next_wake(state) is None
