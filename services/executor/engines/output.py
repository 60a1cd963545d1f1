"""Relays the output of an engine's workers as lines, as agents do for theirs."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from services.executor.core.agents.state import AgentWorker
from services.executor.core.engines.output_lines import line_text, split_lines
from services.executor.engines.engine import Engine, OutputUnreadable
from services.executor.engines.pauses import about_s, pause_s
from services.executor.soft_outbox import SoftOutbox
from shared.contracts.reports import LogLines

MOST_LINES = 1000
MOST_CHUNKS = 8
"""Chunks of one worker per look: a file that grows faster than it is read holds up nothing."""
MOST_LOOKS_AFTER_END = 60
"""Looks for which the output of a worker that has ended is read on at most."""
SHOWN_FROM = 3
"""Tries in vain after which readers see why there is no output; with the pauses some 4 s."""
MOST_FAILURES = 360
"""Tries in vain after which the output of a worker is given up; with the pauses about an hour."""


@dataclass(slots=True)
class _Place:
    """The place up to which the output of a worker is relayed."""

    identity: str
    worker: AgentWorker
    offset: int = 0
    line: int = 0
    looks_after_end: int = 0
    failures: int = 0
    """Tries in a row that could not read it."""
    problem: str = ""
    """Why the last try could not."""
    due_s: float = 0.0
    """Time of the next try, by the monotonic clock."""
    is_given_up: bool = False


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
            is_read = await self._relay(place)
            if not is_read and place.looks_after_end < MOST_LOOKS_AFTER_END:
                continue
            del self._places[name]
            if not is_read:
                self._give_up(place, place.problem or "it came to no end in time")
            self._post(place, (), is_last=True)

    async def _relay(self, place: _Place) -> bool:
        """Relay some output; return whether all that is there now was read, or it was given up."""
        if place.is_given_up:
            return True
        if monotonic() < place.due_s:
            return False
        try:
            return await self._read(place)
        except OutputUnreadable as error:
            self._note_failure(place, str(error))
            return place.is_given_up

    async def _read(self, place: _Place) -> bool:
        rank = place.worker.launch.rank
        for _ in range(MOST_CHUNKS):
            chunk = await self._engine.read_output(place.identity, rank, place.offset)
            if chunk is None:
                return False
            lines, used = split_lines(chunk, MOST_LINES)
            is_shown = place.failures >= SHOWN_FROM
            # Output that is empty was read too: tries in vain of long ago count no more.
            place.failures, place.problem = 0, ""
            if used or is_shown:
                self._post(place, lines)
            if not used:
                return True
            place.offset += used
            place.line += len(lines)
        return False

    def _note_failure(self, place: _Place, problem: str) -> None:
        """Wait longer for the next try, and show readers why; give up after many in a row."""
        is_new = problem != place.problem
        place.failures, place.problem = place.failures + 1, problem
        place.due_s = monotonic() + about_s(pause_s(place.failures))
        if place.failures >= MOST_FAILURES:
            self._give_up(place, problem)
        elif place.failures == SHOWN_FROM or (place.failures > SHOWN_FROM and is_new):
            text = line_text(f"[berth: the output cannot be read now: {problem}]".encode())
            self._post(place, (), open_line=text)

    def _give_up(self, place: _Place, problem: str) -> None:
        """End the output with a line of it that says why, which readers and archives keep."""
        text = line_text(f"[berth: the output ends here, as it cannot be read: {problem}]".encode())
        self._post(place, (text,))
        place.line += 1
        place.is_given_up = True

    def _post(
        self, place: _Place, lines: tuple[str, ...], *, is_last: bool = False, open_line: str = ""
    ) -> None:
        source = place.worker.source
        printed = LogLines(
            job_id=source.job_id,
            tenant=source.tenant,
            rank=source.rank,
            attempt=source.attempt,
            first_line=place.line,
            lines=lines,
            is_last=is_last,
            open_line=open_line,
        )
        self._soft.post(self._partition, printed, source.tenant)
