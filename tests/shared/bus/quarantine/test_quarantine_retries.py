"""A quarantined input is decided again, once, after its defect is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from services.access.core.decide import Access
from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.lane import Lane
from shared.bus.logs.memory import MemoryLog
from shared.contracts.access import RetryInput, SkipInput
from shared.contracts.base import Command
from shared.contracts.codec import encode
from shared.contracts.command_answers import CommandRefused
from shared.contracts.rejected import InputQuarantined, InputRetried
from shared.ledger import cloudevents
from shared.ledger.decider import Decision, Input
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from tests.harness.ledger import SeatDecider, Seats, command
from tests.shared.bus.quarantine.test_quarantine import RAISE, Case, Defective

REQUESTS = TP("access.commands", 0)
QUARANTINED = "admission/0/2/0"
"""The id of the first input that is quarantined behind one record."""


REQUESTED = frozenset({"input.retry-requested.v1"})


class Fixed(SeatDecider):
    """As it is after the fix; like every service it does not react to the request itself."""

    def decide(self, state: Seats, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        return super().decide(state, [item for item in inputs if item.source != "access"], now)


class Broken(Defective):
    """The same before the fix."""

    def decide(self, state: Seats, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        return super().decide(state, [item for item in inputs if item.source != "access"], now)


class Operated(Case):
    """A lane that follows access, and the lane of access."""

    async def begin(self, decider: SeatDecider | None = None) -> Operated:
        """Start a process of both, with this decider."""
        self.access = Lane(Access(), 0, MemoryLog(self.broker), inputs=[REQUESTS])
        self.lane: Lane[Seats] = Lane(
            decider or Broken(),
            0,
            MemoryLog(self.broker),
            inputs=[ACCESS, TP("commands", 0), TP("placement", 0)],
            decoder=InputDecoder("admission", consumed=REQUESTED),
        )
        await self.access.start()
        await self.lane.start()
        return self

    async def operate(self, *commands: Command) -> list[str]:
        """Send commands of an operator; return the reasons of those that are refused."""
        seq = self.access.cursor.seq
        for number, message in enumerate(commands):
            value = cloudevents.encode(
                id=f"op{seq}-{number}", source="/test", type=message.TYPE, data=encode(message)
            )
            self.broker.append(REQUESTS, value)
        for entry in self.broker.entries(REQUESTS)[self.access.next_offsets()[REQUESTS] :]:
            await self.access.deliver(REQUESTS, entry.offset, entry.value)
        while self.access.inbox.pending:
            await self.access.poll()
        await self.send(tp=ACCESS)
        await self.decide()
        return [event.reason for event in self.events(ACCESS) if isinstance(event, CommandRefused)]


@pytest.fixture
async def case() -> Operated:
    made = await Operated().begin()
    await made.send(command("first"))
    await made.decide()
    await made.send(command("bad", reason=RAISE), command("last"))
    await made.decide()
    return made


async def test_a_retry_after_the_fix_decides_the_input_once_under_a_new_id(case: Operated) -> None:
    await case.begin(Fixed())
    assert await case.operate(RetryInput(input_id=QUARANTINED)) == []
    assert sorted(case.lane.state.answers) == sorted(["first", "last", QUARANTINED])
    assert case.events()[-1] == InputRetried(input_id=QUARANTINED, outcome="decided")
    await case.operate(RetryInput(input_id=QUARANTINED))
    assert case.lane.state.problems() == []
    retried = [event for event in case.events() if isinstance(event, InputRetried)]
    assert len(retried) == 1


async def test_a_retry_that_raises_again_is_another_quarantined_input_and_can_be_retried(
    case: Operated,
) -> None:
    await case.operate(RetryInput(input_id=QUARANTINED))
    first, again = case.quarantined()
    assert (first.topic, again.topic) == ("commands", "access")
    assert case.events()[-1] == InputRetried(input_id=QUARANTINED, outcome="raised")
    second = f"admission/0/{case.lane.cursor.seq}/0"
    await case.begin(Fixed())
    await case.operate(RetryInput(input_id=second))
    assert sorted(case.lane.state.answers) == sorted(["first", "last", QUARANTINED])
    assert case.events()[-1] == InputRetried(input_id=second, outcome="decided")


async def test_an_input_that_is_skipped_stays_undecided_and_cannot_be_retried(
    case: Operated,
) -> None:
    await case.operate(SkipInput(input_id=QUARANTINED, reason="of a test"))
    await case.begin(Fixed())
    assert await case.operate(RetryInput(input_id=QUARANTINED)) == ["already_settled"]
    assert sorted(case.lane.state.answers) == ["first", "last"]


async def test_a_retry_of_what_was_never_quarantined_decides_nothing(case: Operated) -> None:
    await case.operate(RetryInput(input_id="admission/0/1/0"))
    assert case.events()[-1] == InputRetried(input_id="admission/0/1/0", outcome="not_retained")
    assert await case.operate(RetryInput(input_id="nobody/0/1/0")) == ["unknown_input"]
    assert len([e for e in case.events() if isinstance(e, InputQuarantined)]) == 1
