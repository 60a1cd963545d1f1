"""One lane of one service: the only code that appends to a ledger."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from shared.bus.clock import LedgerClock
from shared.bus.failpoints import Failpoints
from shared.bus.folds.fold import Fold, Replica
from shared.bus.folds.snapshot_policy import SnapshotPolicy
from shared.bus.folds.snapshots import Snapshots
from shared.bus.inputs.gather import Gatherer
from shared.bus.inputs.inbox import Delivery, Inbox
from shared.bus.inputs.local_inputs import LocalInputs
from shared.bus.lane.commit import Committer
from shared.bus.lane.rounds import OnAccepted, Rounds
from shared.bus.logs.log import Log
from shared.contracts.base import Command, Event, Local, Model
from shared.ledger.clock_steps import last_step
from shared.ledger.decider import Decider, Fact, Input
from shared.ledger.errors import LaneRevoked
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor, Reader

S = TypeVar("S")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """Settings of one lane; the defaults are those of production."""

    window_ms: int = 20
    snapshot_every: int = 1_000
    """Records that the next start would fold, at which a snapshot is due."""
    snapshot_pause_s: float = 30.0
    failpoints: Failpoints = field(default_factory=Failpoints)


class Lane(Generic[S]):
    """One partition owned by one decider: it gathers inputs, decides and appends.

    `start` folds the ledger, `run` polls until `revoke`, and `stop` comes after `run` has ended.
    `state` may be read by the shell at any time; between two appends it is never ahead of the
    records that the log will confirm, or that a fold will repair.
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
        settings: LaneSettings | None = None,
        on_accepted: OnAccepted | None = None,
        clock: LedgerClock | None = None,
    ) -> None:
        self._settings = settings or LaneSettings()
        self.decider = decider
        self.partition = partition
        self.tp = TP(decider.ledger, partition)
        self.inbox = Inbox(inputs, decoder or InputDecoder(decider.ledger))
        self._client = client
        self._on_accepted = on_accepted
        self._clock = clock or LedgerClock()
        self._locals = LocalInputs(self.tp.key)
        self._gatherer = Gatherer(self.inbox, self._locals, self._settings.window_ms / 1000)
        self._snapshot_policy = SnapshotPolicy(
            snapshots,
            self._clock,
            every=self._settings.snapshot_every,
            pause_s=self._settings.snapshot_pause_s,
        )
        self._committer = Committer(
            Replica(Reader(*self.tp), decider.initial(partition)),
            Fold(decider, partition, client, snapshots),
            self.inbox,
            self._clock,
            self._settle_own,
        )
        self._rounds = Rounds(
            decider,
            self.tp,
            client,
            self._gatherer,
            self._locals,
            self._committer,
            self._snapshot_policy,
            self._clock,
            self._settings.failpoints,
            on_accepted,
        )
        self._revoked = False

    @property
    def name(self) -> str:
        """Id of this writer in its records; no other process has it."""
        return self._committer.writer

    @property
    def state(self) -> S:
        return self._committer.replica.state

    @property
    def cursor(self) -> Cursor:
        return self._committer.replica.reader.cursor

    def now_ms(self) -> int:
        """Return the time by which the lane decides."""
        return self._clock.now_ms(self.cursor.at)

    @property
    def losses(self) -> int:
        """Lost appends since the last one that won."""
        return self._committer.losses

    @property
    def lost_appends(self) -> int:
        """Lost appends since this lane began."""
        return self._committer.lost_appends

    def next_offsets(self) -> dict[TP, int]:
        """Return the next offset of each input."""
        return self.inbox.next_offsets()

    def skip_to(self, tp: TP, offset: int) -> None:
        """Continue an input at its first record that retention has left."""
        self.inbox.skip_to(tp, offset)

    def known_offsets(self) -> dict[TP, int]:
        """Return `next_offsets` and that of the ledger: none of these logs may become shorter."""
        return {**self.next_offsets(), self.tp: self.cursor.next}

    def mark(self) -> None:
        """Store the cursor, so that the next start detects a lost tail.

        The start and each round do so; call it also while the lane is idle, for a disk that was
        full then.
        """
        self._snapshot_policy.mark_if_due(self.cursor)

    async def keep_marked(self) -> None:
        """Store the cursor of appends that came too soon after a mark; runs until cancelled."""
        await self._snapshot_policy.keep_marked(lambda: self.cursor)

    async def start(self) -> None:
        """Fold the ledger; afterwards `next_offsets` is valid.

        Records that were folded count for the next snapshot: a process that is killed again and
        again before it has written much does not fold more and more.
        """
        await self._client.start()
        self._committer.replica.reader.cursor = marked = self._snapshot_policy.marked()
        await self._committer.refold()
        self._clock.restore(last_step(self.state))
        if self.cursor != marked:
            self.mark()
        await self._snapshot_policy.store_if_due(self._committer.replica)

    async def deliver(self, tp: TP, offset: int, value: bytes | None) -> Delivery:
        """Take one record of an input. Blocks while the lane has enough to do.

        After "gap" the caller has to read that input again from `next_offsets`.
        """
        await self.inbox.wait_for_room(tp)
        if self._revoked:
            return "old"
        delivery = self.inbox.put(tp, offset, value)
        if delivery == "ok":
            self._gatherer.notify()
        return delivery

    def release_held(self) -> None:
        """Release the inputs that are held back for `access`, which ends before them."""
        log.warning("access ends before an offset that an input names", extra={"lane": self.tp.key})
        self.inbox.release_held()
        self._gatherer.notify()

    def offer(self, message: Input | Event | Command | Model) -> asyncio.Future[list[Fact]]:
        """Queue a local input; the future gets the facts it caused, once they are accepted."""
        if self._revoked:
            raise LaneRevoked(f"{self.tp.key} is revoked")
        facts = self._locals.add(message, self._clock.monotonic_s())
        self._gatherer.notify()
        return facts

    def report_steps(self, step_input: Callable[[int], Local]) -> None:
        """Let the decider know of steps of the clock by an input that is made of their ms."""
        self._rounds.step_input = step_input

    async def run(self) -> None:
        """Poll until revoked; LaneHalted ends the lane, whatever else it raises the process."""
        while not self._revoked:
            await self._gatherer.wait_until_due(self._due_in_s)
            await self._gatherer.fill_window(self._clock.monotonic_s())
            if not self._revoked:
                await self.poll()

    async def poll(self) -> None:
        """Run one round; see `Rounds`."""
        await self._rounds.run_one()

    async def revoke(self) -> None:
        """Stop deciding; an append in flight may still land, which is harmless."""
        self._revoked = True
        self._gatherer.close()
        self.inbox.close()

    async def stop(self) -> None:
        """Store a snapshot for the next owner and stop the client, once `run` has ended."""
        self._locals.abandon()
        if not self._rounds.is_unfinished:
            await self._snapshot_policy.store(self._committer.replica)
        await self._client.stop()

    def _due_in_s(self) -> float | None:
        due = self.decider.next_wake(self.state)
        return None if due is None else max(due - self.now_ms(), 0) / 1000

    def _settle_own(self, accepted: Accepted) -> None:
        """Settle the local inputs of our record that was accepted although it seemed lost."""
        facts = accepted.facts(own=True)
        self._locals.resolve_causes(facts)
        self._rounds.report(facts, [""] * len(facts), accepted.record.at * 1_000_000)
