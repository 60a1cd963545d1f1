"""Which commands were answered: a gateway may deliver one twice, nobody may answer it twice."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field

REMEMBERED = 100_000


def short(command_id: str) -> int:
    """64 bits of the id, the same in every process."""
    digest = hashlib.blake2b(command_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


@dataclass(slots=True)
class Answered:
    """The last `remembered` command ids, eight bytes of each; part of a decider's state."""

    remembered: int = REMEMBERED
    known: set[int] = field(default_factory=set)
    order: deque[int] = field(default_factory=deque)

    def __contains__(self, command_id: object) -> bool:
        return isinstance(command_id, str) and short(command_id) in self.known

    def note(self, command_id: str) -> None:
        """Noted again, an id stays where it is in the line."""
        key = short(command_id)
        if key in self.known:
            return
        self.known.add(key)
        self.order.append(key)
        if len(self.order) > self.remembered:
            self.known.discard(self.order.popleft())
