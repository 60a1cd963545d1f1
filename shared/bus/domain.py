"""One lane of one service: the only code that appends to a ledger."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

import msgspec

from shared.bus.clock import now_ms
from shared.bus.failpoints import Failpoints
from shared.bus.fold import Fold
from shared.bus.ids import new_id
from shared.bus.inbox import Fed, Inbox, Waiting
from shared.bus.log import Log
from shared.bus.snapshots import Snapshots
from shared.contracts.base import Command, Event, Model
from shared.contracts.codec import encode_event
from shared.ledger.decider import Decider, Decision, Fact, Input
from shared.ledger.errors import Busy, LaneLost, NotAccepted, OutcomeUnknown, TooLarge
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor, Reader
from shared.ledger.record import LIMIT_BYTES, Record, StoredEvent, encode, pack
from shared.telemetry.trace_ids import for_event

S = TypeVar("S")

MAX_INPUTS = 200
MAX_INPUT_BYTES = 192 * 1024
MAX_RECORD_BYTES = 1_000_000
MAX_LOCALS = 10_000
MAX_SILENT = 1_000
LOSSES_BEFORE_BACKING_OFF = 3
BACK_OFF_S = 1.0
IDLE_WAKE_S = 0.05
MARK_EVERY_S = 1.0

log = logging.getLogger(__name__)

OnAccepted = Callable[[list[Fact], list[str], int], None]
"""Facts, the traceparent of what caused each, and when their round began (ns)."""


@dataclass(frozen=True, slots=True)
class DomainSettings:
    """How one lane is run; the defaults are those of production."""

    window_ms: int = 20
    snapshot_every: int = 1_000
    """Records that the next start would fold, at which a snapshot is due."""
    snapshot_pause_s: float = 30.0
    failpoints: Failpoints = field(default_factory=Failpoints)


@dataclass(slots=True, eq=False)
class Local:
    """A local input and who waits for its facts."""

    input: Input
    answer: asyncio.Future[list[Fact]]


@dataclass(slots=True)
class Draft:
    """What one round wants to append."""

    locals: list[Local]
    waiting: list[Waiting]
    facts: list[Fact]
    parents: list[str]
    started_ns: int


class Domain(Generic[S]):
    """Fold, then for ever: gather inputs, decide, append, and believe only the log.

    `state` may be read by the shell at any time; between two appends it is never ahead of what
    the log will confirm or the fold will repair.
    """

    def __init__(
        self,
        decider: Decider[S],
        partition: int,
        client: Log,
        *,
        inputs: Sequence[TP] = (),
        decoder: InputDecoder | None = None,
        snapshots: Snapshots[S] | None = None,
        settings: DomainSettings | None = None,
        on_accepted: OnAccepted | None = None,
    ) -> None:
        self.decider = decider
        self.partition = partition
        self.name = secrets.token_hex(6)
        self.tp = TP(decider.ledger, partition)
        self.inbox = Inbox(inputs, decoder or InputDecoder(decider.ledger))
        self._client = client
        self._snapshots = snapshots
        self._settings = settings or DomainSettings()
        self._on_accepted = on_accepted
        self._fold = Fold(decider, partition, client, snapshots)
        self.reader = Reader(decider.ledger, partition)
        self.state: S = decider.initial(partition)
        self._locals: deque[Local] = deque()
        self._wake = asyncio.Event()
        self._full = asyncio.Event()
        self._closed = False
        self._in_step = False
        self._idle = False
        self._max_inputs = MAX_INPUTS
        self._last_step = 0.0
        self.losses = 0
        self.lost_appends = 0
        self._since_snapshot = 0
        self._snapshot_at = -math.inf
        self._marked_at = 0.0
        self._read_at = time.monotonic()

    @property
    def cursor(self) -> Cursor:
        return self.reader.cursor

    async def open(self) -> None:
        """Fold; afterwards `wants` says where each input has to be read from.

        What was folded counts for the next snapshot: who is killed again and again before it has
        written much does not fold more and more.
        """
        await self._client.start()
        if self._snapshots:
            marked = self._snapshots.marked()
            self.reader = Reader(self.tp.topic, self.partition, marked)
        await self._refold()
        await self._snapshot_if_due()

    def wants(self) -> dict[TP, int]:
        return self.inbox.wants()

    def knows(self) -> dict[TP, int]:
        """As `wants`, and the ledger itself: no log of these may become shorter."""
        return {**self.wants(), self.tp: self.cursor.next}

    async def feed(self, tp: TP, offset: int, value: bytes | None) -> Fed:
        """Hand over one record of an input. Blocks while the lane has enough to do.

        On "gap" the caller has to read that input again from `wants`.
        """
        await self.inbox.room(tp)
        if self._closed:
            return "old"
        fed = self.inbox.put(tp, offset, value)
        if fed == "ok":
            self._stir()
        return fed

    def let_go(self) -> None:
        """Decide what is held back for `access`, which ends before it."""
        log.warning("access ends before what an input has seen of it", extra={"lane": self.tp.key})
        self.inbox.let_go()
        self._stir()

    def offer(self, message: Input | Event | Command | Model) -> asyncio.Future[list[Fact]]:
        """A local input; the future has the facts it caused, once they are accepted."""
        if self._closed:
            raise LaneLost(f"{self.tp.key} is closed")
        if len(self._locals) >= MAX_LOCALS:
            raise Busy(f"{self.tp.key}: {MAX_LOCALS} local inputs wait")
        given = message if isinstance(message, Input) else Input("local", new_id(), message)
        local = Local(given, asyncio.get_running_loop().create_future())
        self._locals.append(local)
        self._stir()
        return local.answer

    async def run(self) -> None:
        """Decide until closed; whatever it raises must end the process."""
        while not self._closed:
            await self._until_due()
            await self._gather()
            if not self._closed:
                await self.step()

    async def step(self) -> None:
        """One round: decide what is there, append it, and learn from the log what came of it."""
        self._in_step = True
        draft = self._decide()
        if draft.facts or self._must_write(draft):
            await self._append(draft)
        else:
            self._stay_silent(draft)
        self._in_step = False
        self._last_step = time.monotonic()
        await self._snapshot_if_due()

    async def close(self) -> None:
        """Stop deciding; a request in flight may still land, which is harmless."""
        self._closed = True
        self._stir()
        self.inbox.close()

    async def finish(self) -> None:
        """After `run` has ended: keep a snapshot for the next owner on this machine, hang up."""
        for local in self._locals:
            if not local.answer.done():
                local.answer.set_exception(LaneLost(f"{self.tp.key} was given up"))
        self._locals.clear()
        if self._snapshots and self._since_snapshot and not self._in_step:
            await self._snapshot()
        await self._client.stop()

    # ---- waiting -------------------------------------------------------------------------

    def _stir(self) -> None:
        self._wake.set()
        if self.inbox.pending_inputs + len(self._locals) >= self._max_inputs:
            self._full.set()

    def _has_input(self) -> bool:
        return bool(self._locals) or self.inbox.pending > 0

    def _wake_in_s(self) -> float | None:
        due = self.decider.next_wake(self.state)
        return None if due is None else max(due - self._now(), 0) / 1000

    def _now(self) -> int:
        """The wall clock. Where that is behind the ledger (somebody's clock was ahead, or ours
        was set back) the ledger's time goes on from its last record: it must not stand still."""
        wall, at = now_ms(), self.cursor.at
        return wall if wall >= at else at + int((time.monotonic() - self._read_at) * 1000)

    async def _until_due(self) -> None:
        """Until an input comes or `next_wake` is due; a wake that led to nothing is no hurry."""
        pause_s = IDLE_WAKE_S if self._idle else 0.0
        self._idle = False
        while not self._closed and not self._has_input():
            self._wake.clear()
            due_s = self._wake_in_s()
            if due_s == 0 and pause_s == 0:
                return
            try:
                async with asyncio.timeout(None if due_s is None else max(due_s, pause_s)):
                    await self._wake.wait()
            except TimeoutError:
                return

    async def _gather(self) -> None:
        """Batches decide the cost: wait a window when busy, a quarter of it after a pause."""
        window_s = self._settings.window_ms / 1000
        busy = time.monotonic() - self._last_step < 5 * window_s
        self._full.clear()
        self._stir()
        try:
            async with asyncio.timeout(window_s if busy else window_s / 4):
                await self._full.wait()
        except TimeoutError:
            return

    # ---- deciding ------------------------------------------------------------------------

    def _draw(self) -> Draft:
        started_ns = time.time_ns()
        many = min(len(self._locals), self._max_inputs)
        locals_ = list(islice(self._locals, many))
        room = max(self._max_inputs - many, 1)
        return Draft(locals_, self.inbox.batch(room, MAX_INPUT_BYTES), [], [], started_ns)

    def _decide(self) -> Draft:
        draft = self._draw()
        now = self._now()
        inputs = [local.input for local in draft.locals]
        for waiting in draft.waiting:
            inputs.extend(waiting.inputs)
        if inputs:
            self._pull(draft, inputs, now)
        due = self.decider.next_wake(self.state)
        if due is not None and due <= now:
            self._pull(draft, [], now)
        return draft

    def _pull(self, draft: Draft, inputs: Sequence[Input], now: int) -> None:
        for decision in self.decider.decide(self.state, inputs, now):
            fact = self._fact(decision, len(draft.facts), now)
            self.decider.evolve(self.state, fact)
            draft.facts.append(fact)
            draft.parents.append(decision.traceparent)

    def _fact(self, decision: Decision, index: int, now: int) -> Fact:
        parent = decision.traceparent
        return Fact(
            decision.event,
            self.decider.ledger,
            self.partition,
            self.cursor.seq + 1,
            index,
            now,
            decision.cause,
            for_event(decision.event.TYPE, parent) if parent else "",
        )

    def _must_write(self, draft: Draft) -> bool:
        return self.inbox.silent + len(draft.waiting) >= MAX_SILENT

    def _stay_silent(self, draft: Draft) -> None:
        self.inbox.fell_silent(draft.waiting)
        self._answer(draft.locals, [])
        self._idle = not (draft.locals or draft.waiting)

    # ---- appending -----------------------------------------------------------------------

    async def _append(self, draft: Draft) -> None:
        record = self._record(draft)
        value = encode(record)
        if len(value) > LIMIT_BYTES and await self._cut(draft, len(value)):
            return
        offset = await self._send(value)
        if offset != self.cursor.next:
            return await self._ask_the_log(draft, record)
        if self.reader.offer_record(offset, record) is None:
            raise NotAccepted(f"{self.tp.key}: our record at {offset} is against our own rule")
        self.losses = 0
        self._read_at = time.monotonic()
        self._max_inputs = min(self._max_inputs * 2, MAX_INPUTS)
        self.inbox.used(draft.waiting)
        self._since_snapshot += 1
        self._mark_if_due()
        self._answer(draft.locals, draft.facts)
        self._tell(draft.facts, draft.parents, draft.started_ns)

    def _record(self, draft: Draft) -> Record:
        stored = [
            StoredEvent(
                fact.event.TYPE,
                fact.event.subject,
                msgspec.Raw(encode_event(fact.event)),
                fact.cause,
                fact.traceparent,
            )
            for fact in draft.facts
        ]
        return Record(
            id=new_id(),
            seq=self.cursor.seq + 1,
            prev=self.cursor.id,
            w=self.name,
            at=draft.facts[0].at if draft.facts else self._now(),
            inputs=self.inbox.vector(self.cursor.inputs, draft.waiting),
            ev=pack(stored),
        )

    async def _cut(self, draft: Draft, size: int) -> bool:
        """Too much for one record: decide again with half of it; False when nothing is left to
        halve and the record is still one that a broker takes."""
        many = len(draft.locals) + sum(len(w.inputs) for w in draft.waiting)
        if len(draft.locals) + len(draft.waiting) > 1 and self._max_inputs > 1:
            self._max_inputs = max(min(many, self._max_inputs) // 2, 1)
            await self._refold()
            return True
        if size > MAX_RECORD_BYTES:
            raise TooLarge(f"{self.tp.key}: one input leads to a record of {size} bytes")
        return False

    async def _send(self, value: bytes) -> int | None:
        points = self._settings.failpoints
        points.pass_by("before_send")
        sending = asyncio.ensure_future(self._client.append(self.tp, value))
        if points.due("in_flight"):
            await asyncio.sleep(0.01)
            points.die()
        try:
            offset = await sending
        except OutcomeUnknown as error:
            log.warning("append of unknown outcome", extra={"lane": self.tp.key, "why": str(error)})
            return None
        points.pass_by("after_ack")
        return offset

    async def _ask_the_log(self, draft: Draft, record: Record) -> None:
        """A rival, a duplicate or a lost answer: only a fold can tell whose record counts."""
        self.lost_appends += 1
        if await self._refold(record.id):
            self.losses = 0
            return
        self.losses += 1
        if self.losses >= LOSSES_BEFORE_BACKING_OFF:
            await asyncio.sleep(BACK_OFF_S)

    async def _refold(self, mine: str = "") -> bool:
        """Take the log's state; True when the record `mine` turns out to be in it."""
        won = False

        def seen(accepted: Accepted) -> None:
            nonlocal won
            won = won or accepted.record.id == mine
            if accepted.record.w == self.name:
                self._settle_locals(accepted)

        folded = await self._fold.run(self.cursor, seen)
        self.reader, self.state = folded.reader, folded.state
        self._since_snapshot = folded.records
        self._read_at = time.monotonic()
        self.inbox.settle(self.cursor.inputs)
        return won

    def _settle_locals(self, accepted: Accepted) -> None:
        """An append of ours that we had given up on has won after all."""
        facts = accepted.facts(own=True)
        causes = {fact.cause for fact in facts}
        self._answer([local for local in self._locals if local.input.id in causes], facts)
        self._tell(facts, [""] * len(facts), accepted.record.at * 1_000_000)

    def _answer(self, locals_: list[Local], facts: list[Fact]) -> None:
        for local in locals_:
            self._locals.remove(local)
            if not local.answer.done():
                local.answer.set_result([f for f in facts if f.cause == local.input.id])

    def _tell(self, facts: list[Fact], parents: list[str], started_ns: int) -> None:
        if self._on_accepted is not None and facts:
            self._on_accepted(facts, parents, started_ns)

    # ---- snapshots -----------------------------------------------------------------------

    def _mark_if_due(self) -> None:
        if self._snapshots and time.monotonic() - self._marked_at >= MARK_EVERY_S:
            self._snapshots.mark(self.cursor)
            self._marked_at = time.monotonic()

    async def _snapshot_if_due(self) -> None:
        if self._snapshots is None or self._since_snapshot < self._settings.snapshot_every:
            return
        if time.monotonic() - self._snapshot_at >= self._settings.snapshot_pause_s:
            await self._snapshot()

    async def _snapshot(self) -> None:
        if self._snapshots is None:
            return
        packed = self._snapshots.pack(self.cursor, self.state)
        self._since_snapshot = 0
        await asyncio.to_thread(self._snapshots.store, self.cursor.seq, packed)
        self._snapshot_at = time.monotonic()
