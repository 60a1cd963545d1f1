"""One round of a lane: its inputs are decided, and the facts appended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from traceback import format_tb
from typing import Generic, TypeVar

from shared.bus.clock import LedgerClock
from shared.bus.failpoints import Failpoints
from shared.bus.folds.snapshot_policy import SnapshotPolicy
from shared.bus.ids import new_id
from shared.bus.inputs.gather import Batch, Gatherer
from shared.bus.inputs.local_inputs import LocalInputs
from shared.bus.lane.commit import Committer, send
from shared.bus.lane.draft import Draft, build_record, draft_facts
from shared.bus.logs.log import Log
from shared.bus.quarantine.parts import Part, Raising, blame, only, parts_of
from shared.bus.quarantine.quarantine import PartQuarantine, culprit_of, describe, quarantine
from shared.bus.quarantine.quarantine_limits import QuarantineLimits
from shared.bus.quarantine.quarantine_retries import QuarantineRetries
from shared.contracts.base import Local
from shared.ledger.decider import Decider, Decision, Fact
from shared.ledger.errors import BusError, LaneHalted, TooLarge
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.ledger.record import LIMIT_BYTES, Record, encode

S = TypeVar("S")

MAX_RECORD_BYTES = 1_000_000
MAX_SILENT = 1_000

log = logging.getLogger(__name__)

OnAccepted = Callable[[list[Fact], list[str], int], None]
"""Called with facts, the traceparent of each cause, and the start of their round in ns."""


class Overtaken(Exception):
    """Another process has appended: what is decided now would be lost."""


class Rounds(Generic[S]):
    """The rounds of one lane, one after the other."""

    def __init__(
        self,
        decider: Decider[S],
        tp: TP,
        client: Log,
        gatherer: Gatherer,
        locals_: LocalInputs,
        committer: Committer[S],
        snapshot_policy: SnapshotPolicy[S],
        clock: LedgerClock,
        failpoints: Failpoints,
        on_accepted: OnAccepted | None,
    ) -> None:
        self.is_unfinished = False
        """Whether a round is under way, or was ended by an error."""
        self.step_input: Callable[[int], Local] | None = None
        """Makes the input by which the decider notes a step of the clock, in ms."""
        self._decider = decider
        self._tp = tp
        self._client = client
        self._gatherer = gatherer
        self._inbox = gatherer.inbox
        self._locals = locals_
        self._committer = committer
        self._snapshot_policy = snapshot_policy
        self._clock = clock
        self._failpoints = failpoints
        self._on_accepted = on_accepted
        self._limits = QuarantineLimits(tp.key)
        self._retries = QuarantineRetries(client, tp, self._inbox.decoder)

    async def run_one(self) -> None:
        """Run one round: decide the pending inputs, and commit the facts.

        Raises LaneHalted where no input is to blame, or too many are.
        """
        self.is_unfinished = True
        started_ns = self._clock.now_ns()
        now = self._observe_clock()
        batch, draft = self._gatherer.draw(), Draft(now)
        try:
            batch = await self._retries.expand(batch)
            self._decide(batch, draft, batch.closing)
        except BusError:
            raise
        except Exception as error:
            await self._quarantine(batch, draft, error, started_ns)
        else:
            await self._finish(batch, draft, started_ns)
        self.is_unfinished = False
        self._gatherer.end_round(self._clock.monotonic_s())
        await self._snapshot_policy.store_if_due(self._committer.replica)

    @property
    def _cursor(self) -> Cursor:
        return self._committer.replica.cursor

    @property
    def _event_id(self) -> str:
        """Id of the first event of the next record."""
        return f"{self._tp.topic}/{self._tp.partition}/{self._cursor.seq + 1}/0"

    def _observe_clock(self) -> int:
        """Return the time; a step of it is the first input of the round, where it is one."""
        now, step_ms = self._clock.observe(self._cursor.at)
        if step_ms:
            log.warning("clock stepped", extra={"lane": self._tp.key, "by_ms": step_ms})
            if self.step_input is not None:
                self._locals.add_first(self.step_input(step_ms))
        return now

    def _now(self) -> int:
        return self._clock.now_ms(self._cursor.at)

    def _decide(self, batch: Batch, draft: Draft, closing: Sequence[Decision] = ()) -> None:
        for record in batch.records:
            if record.error is not None:
                raise record.error
        seq = self._cursor.seq + 1
        draft_facts(
            self._decider, self._committer.replica.state, batch, draft, self._tp, seq, closing
        )

    async def _finish(self, batch: Batch, draft: Draft, started_ns: int) -> None:
        self._limits.note_decided(batch.inputs)
        if draft.facts or self._inbox.silent + len(batch.records) >= MAX_SILENT:
            await self._commit(batch, draft, started_ns)
        else:
            self._stay_silent(batch)

    async def _quarantine(
        self, batch: Batch, draft: Draft, error: Exception, started_ns: int
    ) -> None:
        """Throw the draft away; halve its batch, or quarantine its one input.

        Nothing of the draft is in the ledger, so it is the same whether `decide` raised or the fold
        of what it decided.
        """
        seq = self._cursor.seq
        if draft.touched:
            await self._refold()
        if self._cursor.seq != seq:
            return
        if self._gatherer.halve(batch) or await self._quarantine_parts(batch, started_ns):
            return
        culprit = culprit_of(batch)
        if culprit is None:
            raise LaneHalted(f"{self._tp.key}: a wake: {describe(error, [])}") from error
        self._limits.check(batch.inputs)
        log.error("input quarantined: %s", describe(error, batch.inputs), extra=self._where(error))
        closing = await quarantine(self._client, culprit, error, self._tp.topic, self._event_id)
        closed = Draft(self._now(), is_final=True)
        try:
            self._decide(Batch([], []), closed, closing)
        except Exception as second:
            raise LaneHalted(f"{self._tp.key}: without input: {describe(second, [])}") from second
        closed.used = None
        if await self._commit(batch, closed, started_ns):
            self._limits.note_quarantined(batch.inputs)

    async def _quarantine_parts(self, batch: Batch, started_ns: int) -> bool:
        """Quarantine the parts on which the decider raises, and decide the others; one record holds
        both. False where no part is to blame, or too many are."""
        parts = parts_of(batch)
        if len(parts) < 2:
            return False
        record = next((record for record in batch.records if record.weight), None)
        quarantined = PartQuarantine(self._client, None if batch.locals else record, self._event_id)
        await quarantined.read()
        draft, seq = Draft(self._now()), self._cursor.seq

        async def attempt(tried: Sequence[Part], raising: Raising) -> Exception | None:
            nonlocal draft
            if draft.touched:
                await self._refold()
            if self._cursor.seq != seq:
                raise Overtaken
            draft, kept = Draft(self._now(), is_final=True), only(batch, tried)
            error = self._try(kept, draft, [*kept.closing, *quarantined.decisions(raising)])
            draft.used = batch if draft.used == kept else draft.used
            return error

        try:
            raising = await blame(parts, attempt)
        except Overtaken:
            return True
        if raising is None:
            if draft.touched:
                await self._refold()
            return False
        return await self._commit_rest(batch, draft, parts, raising, started_ns)

    def _try(self, batch: Batch, draft: Draft, closing: Sequence[Decision]) -> Exception | None:
        """Decide the batch; return the error on which that failed, or its record is too large."""
        try:
            self._decide(batch, draft, closing)
            self._check_size(batch, draft)
        except TooLarge as error:
            return error
        except BusError:
            raise
        except Exception as error:
            return error
        return None

    async def _commit_rest(
        self, batch: Batch, draft: Draft, parts: Sequence[Part], raising: Raising, started_ns: int
    ) -> bool:
        """Append the draft, which has the events of the parts that raise, unless it is cut."""
        if draft.used not in (None, batch):
            await self._commit(batch, draft, started_ns)
            return True
        apart = {(part.input.id, part.entry) for part, _ in raising}
        rest = [part.alone for part in parts if (part.input.id, part.entry) not in apart]
        limits = self._limits.after(rest, [part.alone for part, _ in raising])
        for part, error in raising:
            reason = describe(error, [part.alone])
            log.error("input quarantined: %s", reason, extra=self._where(error))
        if await self._commit(batch, draft, started_ns):
            self._limits = limits
        return True

    def _where(self, error: Exception) -> dict[str, str]:
        return {"lane": self._tp.key, "where": "".join(format_tb(error.__traceback__))}

    def _stay_silent(self, batch: Batch) -> None:
        self._inbox.note_silent(batch.records)
        self._locals.resolve(batch.locals, [])
        self._gatherer.note_silent(batch)

    async def _commit(self, batch: Batch, draft: Draft, started_ns: int) -> bool:
        """Append the draft; return whether it is known to be in the ledger now."""
        committer, cursor = self._committer, self._cursor
        used = batch if draft.used is None else draft.used
        record = self._record(used, draft)
        value = encode(record)
        if len(value) > LIMIT_BYTES and await self._cut(batch, draft, len(value), started_ns):
            return False
        offset = await self._send(value)
        if offset != cursor.next:
            await committer.learn(record)
            self._snapshot_policy.mark_if_due(self._cursor)
            return False
        committer.accept(offset, record)
        self._gatherer.grow()
        self._inbox.note_used(used.records)
        self._snapshot_policy.mark_if_due(self._cursor)
        self._locals.resolve(used.locals, draft.facts)
        self._locals.note_begun(draft.facts)
        self.report(draft.facts, draft.parents, started_ns)
        return True

    def _record(self, used: Batch, draft: Draft) -> Record:
        inputs = self._inbox.vector(self._cursor.inputs, used.records)
        return build_record(draft, self._cursor, inputs, id=new_id(), writer=self._committer.writer)

    def _check_size(self, batch: Batch, draft: Draft) -> None:
        """Raise TooLarge for a draft that fits into no record."""
        used = batch if draft.used is None else draft.used
        size = len(encode(self._record(used, draft)))
        if size > MAX_RECORD_BYTES:
            raise TooLarge(f"one answer needs a record of {size} bytes")

    async def _cut(self, batch: Batch, draft: Draft, size: int, started_ns: int) -> bool:
        """Halve a batch whose record is too large, to decide it again, or quarantine its input.

        Return False if it cannot be halved and the record still fits into a broker's message.
        """
        if self._gatherer.halve(batch):
            await self._refold()
            return True
        if size > MAX_RECORD_BYTES:
            error = TooLarge(f"one answer needs a record of {size} bytes")
            if draft.is_final:
                raise LaneHalted(f"{self._tp.key}: {describe(error, [])}")
            await self._quarantine(batch, draft, error, started_ns)
            return True
        return False

    async def _refold(self) -> None:
        await self._committer.refold()
        self._snapshot_policy.mark_if_due(self._cursor)

    async def _send(self, value: bytes) -> int | None:
        return await send(self._client, self._tp, value, self._failpoints)

    def report(self, facts: list[Fact], parents: list[str], started_ns: int) -> None:
        if self._on_accepted is not None and facts:
            self._on_accepted(facts, parents, started_ns)
