"""Of a record with several senders only the parts on which a decider raises are quarantined."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.lane import Lane
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryLog
from shared.bus.quarantine.parts import MOST_RAISING, find_bytes
from shared.bus.quarantine.quarantine_limits import MOST_IN_A_ROW
from shared.contracts.access import RetryInput, SkipInput
from shared.contracts.attempts import JobStarted
from shared.contracts.codec import decode_command, encode, encode_event
from shared.contracts.rejected import InputRetried
from shared.contracts.reports import ExecutorReported, NodeLeaving, NodesSilent, SilentNode
from shared.ledger import cloudevents
from shared.ledger.decider import Decision, Fact, Input
from shared.ledger.errors import LaneHalted
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from tests.harness.ledger import SeatDecider, Seats, _answer, accepted
from tests.shared.bus.quarantine.test_quarantine import LEDGER, PLACEMENT
from tests.shared.bus.quarantine.test_quarantine_retries import Operated

REPORTS = TP("reports", 0)
GOOD, RAISES, SPOILS = "good", "raises", "spoils"
LARGE = "large"
MOST_BURST = 1_500
"""Answers of one fact, of 300 bytes each; three such facts need more than one record may have."""


class Picky(SeatDecider):
    """Raises on jobs and nodes of some names, in `decide` or in the fold of what it decided."""

    def decide(self, state: Seats, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            match item.message:
                case JobStarted(job_id=name):
                    yield from self.answer(state, item, item.id, name)
                case ExecutorReported(reports=reports):
                    for report in reports:
                        name = getattr(report, "node_id", "")
                        yield from self.answer(state, item, f"{item.id}/{name}", name)
                case NodesSilent(nodes=nodes):
                    for node in nodes:
                        yield from self.answer(state, item, node.node_id, node.node_id)
        if state.wake_at is not None and state.wake_at <= now:
            yield from super().decide(state, [], now)

    def answer(self, state: Seats, item: Input, id: str, name: str) -> Iterator[Decision]:
        if name.startswith(RAISES):
            raise KeyError(name)
        for number in range(MOST_BURST if name.startswith(LARGE) else 0):
            yield item.decision(_answer(f"{id}+{number}", "x" * 256, state))
        yield item.decision(_answer(id, name, state))
        if name.startswith(SPOILS):
            spoilt = _answer(id, name, state).model_copy(update={"command_type": "none"})
            yield item.decision(spoilt)


class Mended(Picky):
    """The same without the defect."""

    def answer(self, state: Seats, item: Input, id: str, name: str) -> Iterator[Decision]:
        if not id.startswith("access/"):
            yield item.decision(_answer(id, name, state))


class OfParts(Operated):
    """A lane that reads facts and reports, under an operator."""

    async def begin(self, decider: SeatDecider | None = None) -> OfParts:
        await super().begin(decider)
        decoder = InputDecoder(
            "admission",
            lambda topic, kind, data: (
                ExecutorReported.model_validate_json(data)
                if topic == "reports"
                else decode_command(kind, data)
            ),
            frozenset({"input.retry-requested.v1", JobStarted.TYPE}),
        )
        self.lane = Lane(
            decider or Picky(),
            0,
            MemoryLog(self.broker),
            inputs=[ACCESS, PLACEMENT, REPORTS],
            decoder=decoder,
        )
        await self.lane.start()
        await self.follow()
        return self

    async def follow(self) -> None:
        """Read what the inputs hold, and decide it."""
        for tp in (ACCESS, PLACEMENT, REPORTS):
            await self.send(tp=tp)
        await self.decide()

    async def report(self, *nodes: str) -> None:
        """Send one record of an executor, in which these nodes leave."""
        reports = [NodeLeaving(node_id=node, incarnation="i") for node in nodes]
        message = ExecutorReported(executor_id="e", reports=tuple(reports))
        value = cloudevents.encode(
            id="r1", source="/test", type=message.TYPE, data=encode(message), at_ms=1
        )
        self.broker.append(REPORTS, value)
        await self.follow()

    async def facts(self, *records: Sequence[tuple[str, str]]) -> None:
        """Append records of placement, each with facts of these jobs and tenants."""
        writer = LedgerWriter(self.broker, "placement")
        for record in records:
            writer.write([JobStarted(job_id=j, tenant=t, attempt=1) for j, t in record])
        await self.follow()

    @property
    def answers(self) -> list[str]:
        return sorted(self.lane.state.answers)

    def ids(self) -> list[str]:
        """The ids of the quarantined inputs, as an operator gives them."""
        records = accepted(LEDGER, self.broker.entries(LEDGER))
        return [
            fact.id
            for record in records
            for fact in record.facts(own=True)
            if fact.event.TYPE == "input.quarantined.v1"
        ]


@pytest.fixture
async def case() -> OfParts:
    return await OfParts().begin()


kinds = st.sampled_from([GOOD, GOOD, GOOD, RAISES, SPOILS])


@settings(max_examples=60)
@given(
    records=st.lists(
        st.lists(kinds, min_size=1, max_size=12).filter(
            lambda record: len(record) - record.count(GOOD) <= MOST_RAISING
        ),
        min_size=1,
        max_size=6,
    )
)
def test_exactly_the_facts_that_raise_are_quarantined(records: list[list[str]]) -> None:
    asyncio.run(_check(records))


async def _check(records: list[list[str]]) -> None:
    """Facts that raise are of one tenant, the others of another, whose first is decided first."""
    case = await OfParts().begin()
    named = [[("before", "ada")]]
    for record, kinds in enumerate(records):
        named.append(
            [
                (f"{kind}{record}-{n}", "ada" if kind == GOOD else "eve")
                for n, kind in enumerate(kinds)
            ]
        )
    await case.facts(*named)
    facts: list[Fact] = [
        fact
        for record in accepted(PLACEMENT, case.broker.entries(PLACEMENT))
        for fact in record.facts()
    ]
    raising = {fact.id: fact.event for fact in facts if getattr(fact.event, "tenant", "") == "eve"}
    assert case.answers == sorted(fact.id for fact in facts if fact.id not in raising)
    assert case.lane.state.problems() == []
    quarantined = case.quarantined()
    assert [event.message_id for event in quarantined] == list(raising)
    for event in quarantined:
        own = encode_event(raising[event.message_id])
        assert event.topic == "placement" and event.message_type == JobStarted.TYPE
        if len(named[event.offset]) > 1:
            (entry,) = (e for e in case.broker.entries(PLACEMENT) if e.offset == event.offset)
            assert event.sha256 == hashlib.sha256(own).hexdigest()
            assert (
                find_bytes(
                    PLACEMENT, event.offset, entry.value or b"", event.message_id, event.sha256
                )
                == own
            )
    written = case.broker.entries(LEDGER)
    again = await OfParts(case.broker).begin()
    assert again.lane.state == case.lane.state and again.broker.entries(LEDGER) == written
    assert again.lane.next_offsets() == case.lane.next_offsets()


async def test_a_report_that_raises_delays_no_other_node(case: OfParts) -> None:
    await case.report("n1", "raises-1", "n2", "spoils-1", "n3")
    assert case.answers == ["r1/n1", "r1/n2", "r1/n3"]
    shown = [event.sha256 for event in case.quarantined()]
    (entry,) = case.broker.entries(REPORTS)
    for name, sha256 in zip(("raises-1", "spoils-1"), shown, strict=True):
        assert name.encode() in (find_bytes(REPORTS, 0, entry.value or b"", "r1", sha256) or b"")


async def test_of_a_local_input_about_several_nodes_the_others_are_decided(case: OfParts) -> None:
    names = ("n1", "raises-1", "n2")
    nodes = tuple(SilentNode(node_id=name, incarnation="i", silent_ms=1) for name in names)
    facts = case.lane.offer(NodesSilent(nodes=nodes))
    await case.decide()
    assert case.answers == ["n1", "n2"] and len(await facts) == 3
    (quarantined,) = case.quarantined()
    assert (quarantined.topic, quarantined.offset, quarantined.sha256) == ("local", -1, "")


async def test_a_retry_decides_the_one_part_and_a_skip_closes_it(case: OfParts) -> None:
    await case.facts([("a", "ada"), ("raises-1", "eve"), ("b", "ada"), ("raises-2", "eve")])
    await case.report("n1", "raises-3")
    before, (first, second, report) = case.answers, case.ids()
    await case.begin(Mended())
    orders = [RetryInput(input_id=first), SkipInput(input_id=second, reason="known")]
    assert await case.operate(*orders, RetryInput(input_id=report)) == []
    assert case.answers == sorted([*before, "placement/0/1/1", "r1/raises-3"])
    assert case.lane.state.problems() == []
    retried = [event for event in case.events() if isinstance(event, InputRetried)]
    assert [(event.input_id, event.outcome) for event in retried] == [
        (first, "decided"),
        (report, "decided"),
    ]


async def test_of_several_retries_in_one_record_one_may_raise_again(case: OfParts) -> None:
    await case.facts([("a", "ada"), ("raises-1", "eve"), ("raises-2", "eve")])
    first, second = case.ids()

    class HalfMended(Picky):
        def answer(self, state: Seats, item: Input, id: str, name: str) -> Iterator[Decision]:
            mended = name.replace("raises-1", "mended")
            return super().answer(state, item, id, mended)

    await case.begin(HalfMended())
    await case.operate(RetryInput(input_id=first), RetryInput(input_id=second))
    retried = [event for event in case.events() if isinstance(event, InputRetried)]
    assert {event.input_id: event.outcome for event in retried} == {
        first: "decided",
        second: "raised",
    }
    assert case.answers == ["placement/0/1/0", "placement/0/1/1"]
    await case.begin(Mended())
    assert await case.operate(RetryInput(input_id=case.ids()[-1])) == []
    assert case.answers == ["placement/0/1/0", "placement/0/1/1", "placement/0/1/2"]


async def test_a_record_that_a_release_before_quarantined_whole_is_decided_whole(
    case: OfParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("shared.bus.lane.rounds.parts_of", lambda batch: [])
        await case.facts([("a", "ada"), ("raises-1", "eve"), ("b", "ada")])
    (whole,) = case.quarantined()
    (entry,) = case.broker.entries(PLACEMENT)
    assert whole.sha256 == hashlib.sha256(entry.value or b"").hexdigest() and case.answers == []
    await case.begin(Mended())
    await case.operate(RetryInput(input_id=case.ids()[0]))
    assert case.answers == [f"placement/0/1/{n}" for n in range(3)]


async def test_of_answers_that_fit_no_record_together_those_that_fit_are_decided(
    case: OfParts,
) -> None:
    await case.facts([("a", "ada"), *[(f"{LARGE}{n}", "eve") for n in range(4)], ("b", "ada")])
    quarantined = case.quarantined()
    assert {event.reason.partition(":")[0] for event in quarantined} == {"TooLarge"}
    kept = {f"placement/0/1/{n}" for n in range(6)} - {event.message_id for event in quarantined}
    assert kept <= set(case.answers) and {"placement/0/1/0", "placement/0/1/5"} < kept


async def test_a_record_with_very_many_defective_facts_is_quarantined_whole(case: OfParts) -> None:
    many = [(f"raises-{n}", "eve") for n in range(MOST_RAISING + 1)]
    await case.facts([("a", "ada")], [("b", "ada"), *many], [("c", "ada")])
    assert len(case.quarantined()) == 1
    assert case.answers == ["placement/0/1/0", "placement/0/3/0"]


async def test_a_build_that_raises_for_several_tenants_of_a_record_halts(case: OfParts) -> None:
    tenants = MOST_IN_A_ROW + 1
    raising = [(f"raises-{n}", f"t{n}") for n in range(tenants)]
    with pytest.raises(LaneHalted):
        await case.facts([("a", "ada"), *raising])
    assert case.events() == []
    await (again := OfParts(case.broker)).begin(Mended())
    assert again.answers == [f"placement/0/1/{n}" for n in range(tenants + 1)]


async def test_a_rival_that_appends_meanwhile_wins_and_nothing_is_decided_twice() -> None:
    case = await OfParts().begin()
    rival = await OfParts(case.broker).begin()
    LedgerWriter(case.broker, "placement").write(
        [JobStarted(job_id=name, tenant="ada", attempt=1) for name in ("a", "raises-1", "b")]
    )
    for lane in (case, rival):
        await lane.send(tp=PLACEMENT)
    await asyncio.gather(case.decide(), rival.decide())
    await case.follow()
    assert case.answers == ["placement/0/1/0", "placement/0/1/2"]
    assert case.lane.state.problems() == [] and len(case.quarantined()) == 1
