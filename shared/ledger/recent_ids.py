"""A bounded memory of ids."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field

CAPACITY = 100_000


def hash_id(id: str) -> int:
    """Return 64 bits of the id, the same in every process."""
    digest = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


@dataclass(slots=True)
class RecentIds:
    """The last `capacity` ids, as hashes of eight bytes; part of a decider's state."""

    capacity: int = CAPACITY
    hashes: set[int] = field(default_factory=set)
    order: deque[int] = field(default_factory=deque)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and hash_id(id) in self.hashes

    def add(self, id: str) -> None:
        """Remember the id; one that is present keeps its place in the order of eviction."""
        key = hash_id(id)
        if key in self.hashes:
            return
        self.hashes.add(key)
        self.order.append(key)
        if len(self.order) > self.capacity:
            self.hashes.discard(self.order.popleft())
