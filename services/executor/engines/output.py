"""Relays the output of an engine's workers as lines, as agents do for theirs."""

from __future__ import annotations

from dataclasses import dataclass

from services.executor.core.agents.state import AgentWorker
from services.executor.core.engines.output_lines import split_lines
from services.executor.engines.engine import Engine
from services.executor.soft_outbox import SoftOutbox
from shared.contracts.reports import LogLines

MOST_LINES = 1000
MOST_CHUNKS = 8
"""Chunks of one worker per look: a file that grows faster than it is read holds up nothing."""
MOST_LOOKS_AFTER_END = 60
"""Looks for which the output of a worker that has ended is read on at most."""


@dataclass(slots=True)
class _Place:
    """The place up to which the output of a worker is relayed."""

    identity: str
    worker: AgentWorker
    offset: int = 0
    line: int = 0
    looks_after_end: int = 0


class OutputRelay:
    """Follows the output of workers until they are released.

    A new executor begins at the first line: readers take each line of a worker once, by its number.
    """

    def __init__(self, engine: Engine, soft: SoftOutbox, partition: int) -> None:
        self._engine = engine
        self._soft = soft
        self._partition = partition
        self._places: dict[str, _Place] = {}

    async def relay(self, identity: str, worker: AgentWorker) -> None:
        """Relay what a worker has printed since the last call."""
        name = worker.allocation_id
        await self._relay(self._places.setdefault(name, _Place(identity, worker)))

    async def end(self, living: frozenset[str]) -> None:
        """Relay the rest of workers that are not among these allocations, and forget them.

        What is not read to its end yet goes on at the next looks, up to a limit.
        """
        for name in self._places.keys() - living:
            place = self._places[name]
            place.looks_after_end += 1
            if await self._relay(place) or place.looks_after_end >= MOST_LOOKS_AFTER_END:
                del self._places[name]
                self._post(place, (), is_last=True)

    async def _relay(self, place: _Place) -> bool:
        """Relay some output; return whether all that is there now was read."""
        rank = place.worker.launch.rank
        for _ in range(MOST_CHUNKS):
            chunk = await self._engine.read_output(place.identity, rank, place.offset)
            if chunk is None:
                return False
            lines, used = split_lines(chunk, MOST_LINES)
            if not used:
                return True
            self._post(place, lines)
            place.offset += used
            place.line += len(lines)
        return False

    def _post(self, place: _Place, lines: tuple[str, ...], *, is_last: bool = False) -> None:
        source = place.worker.source
        printed = LogLines(
            job_id=source.job_id,
            tenant=source.tenant,
            rank=source.rank,
            attempt=source.attempt,
            first_line=place.line,
            lines=lines,
            is_last=is_last,
        )
        self._soft.post(self._partition, printed, source.tenant)
