"""Records of several ledgers in an order in which no record comes before what it follows from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from shared.ledger.partition import TP
from shared.ledger.reader import Accepted

FIRST, LATER = "admission", "placement"


class CausalOrder:
    """Holds records of `placement` until those of `admission` that they were decided on are here.

    Partitions of topics are read at different speeds. Each record of placement names the record of
    admission that placement had read, by its sequence number.
    """

    def __init__(self, read: Mapping[TP, int]) -> None:
        self._read = {tp.partition: seq for tp, seq in read.items() if tp.topic == FIRST}
        self._held: dict[int, deque[Accepted]] = {}

    def release(self, arrived: Iterable[Accepted]) -> list[Accepted]:
        """Return the records that may be processed now."""
        out: list[Accepted] = []
        for accepted in arrived:
            lane = accepted.partition
            if accepted.ledger == LATER:
                self._held.setdefault(lane, deque()).append(accepted)
            else:
                out.append(accepted)
            if accepted.ledger == FIRST:
                self._read[lane] = accepted.record.seq
        for lane, held in self._held.items():
            out += self._freed(lane, held)
        return out

    def _freed(self, lane: int, held: deque[Accepted]) -> Iterator[Accepted]:
        while held and _follows(held[0]) <= self._read.get(lane, 0):
            yield held.popleft()


def _follows(accepted: Accepted) -> int:
    """Return the sequence number of the record of admission that it follows."""
    position = accepted.record.inputs.get(TP(FIRST, accepted.partition).key, 0)
    return 0 if isinstance(position, int) else position[1]
