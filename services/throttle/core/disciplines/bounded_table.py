"""A table with keys that clients choose, which must not grow without bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

CAPACITY = 10_000


@dataclass(slots=True)
class BoundedTable(Generic[K, V]):
    """The values of the `capacity` keys that were written last."""

    capacity: int = CAPACITY
    values: dict[K, V] = field(default_factory=dict)

    def get(self, key: K) -> V | None:
        return self.values.get(key)

    def touch(self, key: K, new: Callable[[], V]) -> V:
        """Return the value of a key that is written now; a new key may evict the oldest one."""
        value = self.values.pop(key, None)
        if value is None:
            value = new()
            if len(self.values) >= self.capacity:
                del self.values[next(iter(self.values))]
        self.values[key] = value
        return value
