"""Watches the heartbeats of a lane's nodes, and offers to it those that are silent or heard again.

A node is judged only as of a moment before a marker that was read: everything that was appended
before that moment is then read too. While no node may be silent, no marker is written.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence

from services.placement.core.pool.node import Node
from services.placement.core.pool.state import Pool
from services.placement.heartbeat_log import HeartbeatLog, LogBroken, NotRead, decoded_heartbeats
from services.placement.silence import Silence, SilenceKey, chunks, silence_key
from shared.bus.lane.lane import Lane
from shared.bus.logs.log import Entry, Log
from shared.contracts.reports import NodesHeard, NodesSilent, SilentNode

NODES_PER_OFFER = 32
NOTE_EVERY_MS = 30_000
"""The silence of a suspected node is noted so often: a restart of placement loses no more of it."""
LONGEST_NOTED_MS = 60_000
"""The longest silence that is noted of a node that is never lost by silence."""
LEAST_NOTES_PER_LOSS = 4
"""A silence that proves a loss sooner is noted so many times before it does."""
LOOKS = 10
"""Looks within the time after which a node is suspected, or lost if that is sooner."""
LOOK_BOUNDS_S = (0.1, 3.0)
"""Least and longest time between two looks."""

log = logging.getLogger(__name__)


async def watch(lane: Lane[Pool], log: Log) -> None:
    """Run for as long as the lane is held."""
    watcher = Watcher(lane, log, time.monotonic)
    try:
        await watcher.start()
        while True:
            await watcher.step()
    finally:
        await watcher.stop()


class Watcher:
    """Reads the heartbeats of one lane; a new one goes on with the counts in the ledger."""

    def __init__(self, lane: Lane[Pool], log: Log, clock: Callable[[], float]) -> None:
        self._lane = lane
        self._clock = clock
        self._log = HeartbeatLog(log, lane.partition)
        self._silence = Silence()
        self._looked_at_s = -math.inf
        self._look_s = LOOK_BOUNDS_S[0]

    async def start(self) -> None:
        """Begin to read: from the oldest offset of a suspicion, or from the end.

        The clock is read after the fold of the ledger, so that a count is never too long.
        """
        at_s = self._clock()
        suspected = [node for node in self._nodes() if node.silence is not None]
        offsets = [node.silence.offset for node in suspected if node.silence is not None]
        for node in suspected:
            if node.silence is not None:
                self._silence.resume(silence_key(node), node.silence, at_s)
        self._silence.watch(map(silence_key, self._nodes()), at_s)
        await self._log.start(min(offsets, default=None))

    async def stop(self) -> None:
        await self._log.stop()

    async def step(self) -> None:
        """Read for a moment; if it is time to look and a node may be silent, read to the end and
        judge.

        Heartbeats come many times within a look, and each costs what it holds: all nodes are gone
        through by the looks alone. One that joins in between is heard at the next look, which is
        later than it was, and so are nodes whose terms are dropped.
        """
        try:
            self._note(await self._log.poll(self._look_s))
            await self._offer_heard()
            now_s = self._clock()
            if now_s - self._looked_at_s < self._look_s:
                return
            self._looked_at_s, self._look_s = now_s, self._time_between_looks_s()
            self._silence.watch(map(silence_key, self._nodes()), now_s)
            if self._silent(now_s):
                async for entries in self._log.read_to_end():
                    self._note(entries)
                await self._offer_silent(now_s)
        except NotRead as error:
            log.warning("heartbeats not read to the end", extra={"reason": str(error)})
        except LogBroken as error:
            log.error("heartbeats were lost, silence counts anew", extra={"reason": str(error)})
            await self._begin_anew()

    async def _begin_anew(self) -> None:
        """Read on at the end; the silence in the ledger is taken back, as it proves nothing."""
        await self._log.start_anew()
        self._silence.begin_anew(self._clock())
        suspected = [silence_key(node) for node in self._nodes() if node.silence is not None]
        for keys in chunks(suspected, NODES_PER_OFFER):
            silent = tuple(SilentNode(silent_ms=0, **key._asdict()) for key in keys)
            await self._lane.offer(NodesSilent(nodes=silent, offset=self._log.position))

    def _nodes(self) -> list[Node]:
        return [node for node in self._lane.state.board.nodes.values() if not node.is_over]

    def _present(self, key: SilenceKey) -> Node | None:
        """Return the node of a count, None if it is gone or counts anew."""
        node = self._lane.state.board.nodes.get(key.node_id)
        is_present = node is not None and not node.is_over and silence_key(node) == key
        return node if is_present else None

    def _time_between_looks_s(self) -> float:
        """Return the time between two looks, by the node that would be suspected or lost first."""
        state, (least_s, longest_s) = self._lane.state, LOOK_BOUNDS_S
        silences_ms = (
            min(state.suspect_after_ms(node), state.lost_after_ms(node)) for node in self._nodes()
        )
        return min(max(min(silences_ms, default=0) / 1000 / LOOKS, least_s), longest_s)

    def _note(self, entries: Sequence[Entry]) -> None:
        now_s = self._clock()
        for entry in entries:
            heartbeats = decoded_heartbeats(entry.value)
            if heartbeats is not None:
                self._silence.note(entry.offset, heartbeats, now_s)

    def _silent(self, at_s: float) -> list[SilentNode]:
        """Return nodes whose silence as of `at_s` is to be decided on, or noted."""
        state = self._lane.state
        silent = []
        for node in self._nodes():
            count = self._silence.of(node.node_id)
            silent_ms = count.silent_ms(at_s)
            lost_after_ms = state.lost_after_ms(node)
            noted_at_ms = next_note_ms(count.noted_ms, lost_after_ms)
            if silent_ms >= min(lost_after_ms, max(state.suspect_after_ms(node), noted_at_ms)):
                silent.append(SilentNode(silent_ms=silent_ms, **count.key._asdict()))
        return silent

    async def _offer_silent(self, at_s: float) -> None:
        """Offer the nodes that were silent at `at_s`; wait for each, so that none is repeated."""
        present = {node.node_id: silence_key(node) for node in self._nodes()}
        self._silence.watch(present.values(), self._clock())
        for nodes in chunks(self._silent(at_s), NODES_PER_OFFER):
            await self._lane.offer(NodesSilent(nodes=tuple(nodes), offset=self._log.position))
            for node in nodes:
                self._silence.note_silent(node.node_id, node.silent_ms)

    async def _offer_heard(self) -> None:
        """Offer the suspected nodes that sent a heartbeat since they are suspected."""
        heard = {
            key.node_id: key.incarnation
            for key in self._silence.take_heard()
            if (node := self._present(key)) is not None and node.silence is not None
        }
        if heard:
            await self._lane.offer(NodesHeard(nodes=heard))


def next_note_ms(noted_ms: int, lost_after_ms: float) -> float:
    """Return the silence at which it is noted again, after `noted_ms` was."""
    if lost_after_ms == math.inf and noted_ms >= LONGEST_NOTED_MS:
        return math.inf
    return noted_ms + min(NOTE_EVERY_MS, lost_after_ms / LEAST_NOTES_PER_LOSS) if noted_ms else 0
