"""An input on which a decider raises is set aside, and its lane goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from shared.bus.lane import Lane
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.bus.quarantine import LATEST, MOST_IN_A_ROW, MOST_OF_LATEST, Flood, describe, place_of
from shared.contracts.base import Event
from shared.contracts.jobs import CancelJob, CommandAccepted, CommandRefused, JobSpec, SubmitJob
from shared.contracts.rejected import InputQuarantined
from shared.ledger.decider import Decision, Fact, Input
from shared.ledger.errors import LaneHalted, Quarantined
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Reader
from shared.testing.ledger import SeatDecider, Seats, command

COMMANDS, PLACEMENT, LEDGER = TP("commands", 0), TP("placement", 0), TP("admission", 0)
RAISE, SPOIL, WAKE_RAISES = "raise", "spoil", "wake raises"


class Defective(SeatDecider):
    """Raises on what a command asks for, in `decide` or in the fold of what it decided."""

    consumed_events = None

    def decide(self, state: Seats, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            reason = getattr(item.message, "reason", "")
            if reason == RAISE:
                raise KeyError("a defect")
            if reason == SPOIL:
                yield item.decision(CommandAccepted(command_id="spoilt", command_type="none"))
            yield from super().decide(state, [item], now)
            if reason == WAKE_RAISES:
                yield item.decision(CommandAccepted(command_id="w", command_type="99", of="alarm"))
        if not inputs and state.wake_at:
            raise ValueError("the wake is defective")

    def evolve(self, state: Seats, fact: Fact) -> None:
        super().evolve(state, fact)


@dataclass
class Case:
    """A lane with a defective decider."""

    broker: MemoryBroker = field(default_factory=MemoryBroker)
    lane: Lane[Seats] = field(init=False)

    def __post_init__(self) -> None:
        decoder = InputDecoder("admission")
        inputs = [COMMANDS, PLACEMENT]
        self.lane = Lane(Defective(), 0, MemoryLog(self.broker), inputs=inputs, decoder=decoder)

    async def send(self, *values: bytes, tp: TP = COMMANDS) -> None:
        for value in values:
            self.broker.append(tp, value)
        for entry in self.broker.entries(tp)[self.lane.next_offsets()[tp] :]:
            await self.lane.deliver(tp, entry.offset, entry.value)

    async def decide(self) -> None:
        while self.lane.inbox.pending or self.lane._locals:
            await self.lane.poll()

    def events(self, ledger: TP = LEDGER) -> list[Event]:
        reader = Reader(*ledger)
        entries = self.broker.entries(ledger)
        records = (reader.offer(entry.offset, entry.value) for entry in entries)
        return [f.event for r in records if r is not None for f in r.facts(own=True)]

    def quarantined(self) -> list[InputQuarantined]:
        return [event for event in self.events() if isinstance(event, InputQuarantined)]


@pytest.fixture
async def case() -> Case:
    made = Case()
    await made.lane.start()
    return made


@pytest.mark.parametrize("defect", [RAISE, SPOIL])
async def test_one_defective_input_of_many_is_set_aside_and_all_others_are_decided(
    case: Case, defect: str
) -> None:
    names = [f"c{n}" for n in range(20)]
    values = [command(name, reason=defect if name == "c7" else "") for name in names]
    await case.send(*values)
    await case.decide()
    (aside,) = case.quarantined()
    assert (aside.topic, aside.partition, aside.offset, aside.message_id) == (
        "commands",
        0,
        7,
        "c7",
    )
    assert aside.sha256 == hashlib.sha256(values[7]).hexdigest()
    assert aside.message_type == CancelJob.TYPE
    assert sorted(case.lane.state.answers) == sorted({*names} - {"c7"})
    assert case.lane.state.problems() == []
    assert case.lane.cursor.inputs["commands-0"] == 20


async def test_the_sender_of_a_command_is_answered_with_the_id_of_the_quarantine(
    case: Case,
) -> None:
    await case.send(command("good"), command("bad", reason=RAISE))
    await case.decide()
    (refused,) = [event for event in case.events() if isinstance(event, CommandRefused)]
    reader = Reader(*LEDGER)
    places = [
        accepted.facts(own=True)[0].id
        for entry in case.broker.entries(LEDGER)
        if (accepted := reader.offer(entry.offset, entry.value))
        and isinstance(accepted.facts(own=True)[0].event, InputQuarantined)
    ]
    assert (refused.command_id, refused.reason, [refused.of]) == ("bad", "quarantined", places)
    assert places[0] in refused.detail


async def test_another_process_folds_the_same_and_does_not_decide_it_again(case: Case) -> None:
    await case.send(command("bad", reason=RAISE), command("good"))
    await case.decide()
    again = Case(case.broker)
    await again.lane.start()
    assert again.lane.state == case.lane.state
    assert again.lane.next_offsets()[COMMANDS] == 2


async def test_an_answer_that_fits_no_record_is_set_aside(case: Case) -> None:
    await case.send(command("a"), command("big", reason="burst 4000"), command("b"))
    await case.decide()
    (aside,) = case.quarantined()
    assert aside.message_id == "big" and aside.reason.startswith("TooLarge: one answer needs")
    assert sorted(case.lane.state.answers) == ["a", "b"]


async def test_a_record_that_cannot_be_decoded_for_another_reason_than_its_bytes_is_set_aside(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Defect(InputDecoder):
        def decode_plain(self, tp: TP, offset: int, value: bytes | None) -> list[Input]:
            if value == b"defective":
                raise ZeroDivisionError("in an upcaster")
            return super().decode_plain(tp, offset, value)

        def decode_ledger(self, accepted: Accepted) -> list[Input]:
            raise RecursionError("too deep")

    monkeypatch.setattr(case.lane.inbox._channels["commands-0"], "_decoder", Defect("admission"))
    await case.send(command("a"), b"defective", command("b"))
    await case.decide()
    (aside,) = case.quarantined()
    assert (aside.offset, aside.reason) == (1, "ZeroDivisionError: in an upcaster")
    assert "decode_plain" in aside.place
    assert sorted(case.lane.state.answers) == ["a", "b"]


async def test_a_local_command_that_is_defective_fails_and_the_lane_goes_on(case: Case) -> None:
    await case.send(command("a"))
    failed = case.lane.offer(CancelJob(job_id="l", reason=RAISE))
    good = case.lane.offer(CancelJob(job_id="m"))
    await case.decide()
    with pytest.raises(Quarantined):
        await failed
    assert len(await good) == 1
    (aside,) = case.quarantined()
    assert (aside.topic, aside.offset, aside.sha256) == ("local", -1, "")


async def test_a_wake_that_raises_halts_the_lane(case: Case) -> None:
    await case.send(command("a", job_id="alarm"))
    await case.decide()
    with pytest.raises(LaneHalted, match="a wake: ValueError: the wake is defective"):
        while True:
            await case.lane.poll()
    assert case.quarantined() == []


async def test_a_lane_of_a_broken_build_sets_few_inputs_aside_and_halts(case: Case) -> None:
    await case.send(*(command(f"c{n}", reason=RAISE) for n in range(50)))
    with pytest.raises(LaneHalted, match=f"{MOST_IN_A_ROW + 1} inputs in a row"):
        await case.decide()
    assert len(case.quarantined()) == MOST_IN_A_ROW
    assert case.lane.cursor.inputs["commands-0"] == MOST_IN_A_ROW


def test_a_flood_is_many_of_the_latest_inputs_too() -> None:
    flood = Flood("lane")
    for _ in range(MOST_OF_LATEST):
        flood.check()
        flood.note_quarantined()
        flood.note_decided(1)
    with pytest.raises(LaneHalted, match=f"of the latest {LATEST} inputs"):
        flood.check()
    flood.note_decided(LATEST)
    flood.check()


def submitted(**spec: Any) -> list[Input]:
    job = JobSpec.model_validate({"name": "x", **spec})
    message = SubmitJob(job_id="j", tenant="t", pool="p", idempotency_key="k", spec=job)
    return [Input("commands", "c", message)]


def test_the_reason_has_no_private_value_and_no_control_character() -> None:
    inputs = submitted(env={"A": "hunter2"}, command=("run", "--key=abc"))
    error = KeyError("hunter2\x1b[0m in --key=abc")
    assert describe(error, inputs) == "KeyError: '***\\x1b[0m in ***'"
    assert "\x1b" not in describe(ValueError("\x1b hunter2"), inputs)
    assert len(describe(ValueError("x" * 999), inputs)) == 256


def test_the_reason_of_a_validation_has_the_field_and_not_the_value() -> None:
    class Small(BaseModel):
        size: int

    with pytest.raises(ValidationError) as refused:
        Small.model_validate({"size": "hunter2"})
    assert "size: " in describe(refused.value, []) and "hunter2" not in describe(refused.value, [])
    assert place_of(ValueError()) == ""
