"""An input on which a decider raises is quarantined, and its lane goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from shared.bus.lane.lane import Lane
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.bus.quarantine.quarantine import describe, place_of
from shared.bus.quarantine.quarantine_limits import MOST_IN_A_ROW, MOST_OF_LATEST
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.rejected import InputQuarantined
from shared.ledger.decider import Decision, Fact, Input
from shared.ledger.errors import LaneHalted, Quarantined
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Reader
from tests.harness.ledger import SeatDecider, Seats, command

COMMANDS, PLACEMENT, LEDGER = TP("commands", 0), TP("placement", 0), TP("admission", 0)
RAISE, SPOIL, WAKE_RAISES = "raise", "spoil", "wake raises"
FLOOD = 1_000


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
    decider: SeatDecider = field(default_factory=lambda: Defective())
    lane: Lane[Seats] = field(init=False)

    def __post_init__(self) -> None:
        decoder = InputDecoder("admission")
        inputs = [COMMANDS, PLACEMENT]
        self.lane = Lane(self.decider, 0, MemoryLog(self.broker), inputs=inputs, decoder=decoder)

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
async def test_one_defective_input_of_many_is_quarantined_and_all_others_are_decided(
    case: Case, defect: str
) -> None:
    names = [f"c{n}" for n in range(20)]
    values = [command(name, reason=defect if name == "c7" else "") for name in names]
    await case.send(*values)
    await case.decide()
    (quarantined,) = case.quarantined()
    assert (
        quarantined.topic,
        quarantined.partition,
        quarantined.offset,
        quarantined.message_id,
    ) == ("commands", 0, 7, "c7")
    assert quarantined.sha256 == hashlib.sha256(values[7]).hexdigest()
    assert quarantined.message_type == CancelJob.TYPE
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


async def test_an_answer_that_fits_no_record_is_quarantined(case: Case) -> None:
    await case.send(command("a"), command("big", reason="burst 4000"), command("b"))
    await case.decide()
    (quarantined,) = case.quarantined()
    assert quarantined.message_id == "big" and quarantined.reason.startswith(
        "TooLarge: one answer needs"
    )
    assert sorted(case.lane.state.answers) == ["a", "b"]


async def test_a_record_that_cannot_be_decoded_for_another_reason_than_its_bytes_is_quarantined(
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
    (quarantined,) = case.quarantined()
    assert (quarantined.offset, quarantined.reason) == (1, "ZeroDivisionError: in an upcaster")
    assert "decode_plain" in quarantined.place
    assert sorted(case.lane.state.answers) == ["a", "b"]


async def test_a_local_command_that_is_defective_fails_and_the_lane_goes_on(case: Case) -> None:
    await case.send(command("a"))
    failed = case.lane.offer(CancelJob(job_id="l", reason=RAISE))
    good = case.lane.offer(CancelJob(job_id="m"))
    await case.decide()
    with pytest.raises(Quarantined):
        await failed
    assert len(await good) == 1
    (quarantined,) = case.quarantined()
    assert (quarantined.topic, quarantined.offset, quarantined.sha256) == ("local", -1, "")


async def test_a_wake_that_raises_halts_the_lane(case: Case) -> None:
    await case.send(command("a", job_id="alarm"))
    await case.decide()
    with pytest.raises(LaneHalted, match="a wake: ValueError: the wake is defective"):
        while True:
            await case.lane.poll()
    assert case.quarantined() == []


async def test_a_lane_of_a_broken_build_quarantines_few_inputs_and_halts(case: Case) -> None:
    await case.send(*(command(f"c{n}", reason=RAISE) for n in range(50)))
    with pytest.raises(LaneHalted, match=f"{MOST_IN_A_ROW + 1} inputs in a row"):
        await case.decide()
    assert len(case.quarantined()) == MOST_IN_A_ROW
    assert case.lane.cursor.inputs["commands-0"] == MOST_IN_A_ROW


@pytest.mark.parametrize(("period", "quarantined"), [(1, MOST_IN_A_ROW), (2, MOST_OF_LATEST)])
async def test_what_waits_behind_a_flood_is_decided_by_the_mended_build(
    case: Case, period: int, quarantined: int
) -> None:
    """Every `period`-th of a thousand inputs is defective."""
    names = [f"c{n}" for n in range(FLOOD)]
    reasons = [RAISE if n % period == 0 else "" for n in range(FLOOD)]
    await case.send(
        *(command(name, reason=reason) for name, reason in zip(names, reasons, strict=True))
    )
    with pytest.raises(LaneHalted):
        await case.decide()
    left = [event.message_id for event in case.quarantined()]
    assert left == names[: quarantined * period : period]
    assert case.lane.cursor.inputs["commands-0"] == quarantined * period

    mended = Case(case.broker, SeatDecider())
    await mended.lane.start()
    await mended.send()
    await mended.decide()
    assert sorted(mended.lane.state.answers) == sorted({*names} - {*left})
    assert mended.lane.state.problems() == [] and mended.quarantined() == case.quarantined()


async def test_a_service_restored_to_before_the_quarantine_meets_the_input_again(
    case: Case,
) -> None:
    await case.send(command("good"))
    await case.decide()
    backup = list(case.broker.entries(LEDGER))
    await case.send(command("bad", reason=RAISE), command("last"))
    await case.decide()
    restored = {}
    for decider in (Defective(), SeatDecider()):
        broker = MemoryBroker()
        for tp, entries in ((LEDGER, backup), (COMMANDS, case.broker.entries(COMMANDS))):
            for entry in entries:
                broker.append(tp, entry.value or b"")
        restored[type(decider)] = again = Case(broker, decider)
        await again.lane.start()
        await again.send()
        await again.decide()
    assert restored[Defective].quarantined() == case.quarantined()
    assert sorted(restored[Defective].lane.state.answers) == ["good", "last"]
    assert sorted(restored[SeatDecider].lane.state.answers) == ["bad", "good", "last"]
    assert restored[SeatDecider].quarantined() == []


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
