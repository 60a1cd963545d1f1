"""A table with keys that clients choose, which must not grow without bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

CAPACITY = 10_000

FORGOTTEN = 2
"""Old values that a new key makes forgotten at most: more than are added, so a table shrinks."""


@dataclass(slots=True)
class BoundedTable(Generic[K, V]):
    """The values of the `capacity` keys that were written last."""

    capacity: int = CAPACITY
    values: dict[K, V] = field(default_factory=dict)

    def get(self, key: K) -> V | None:
        return self.values.get(key)

    def touch(self, key: K, new: Callable[[], V], is_over: Callable[[V], bool] | None = None) -> V:
        """Return the value of a key that is written now; a new key may evict the oldest one.

        It evicts the oldest ones that are over anyway: those equal to a new one by now.
        """
        value = self.values.pop(key, None)
        if value is None:
            value = new()
            if is_over is not None:
                self._forget(is_over)
            if len(self.values) >= self.capacity:
                del self.values[next(iter(self.values))]
        self.values[key] = value
        return value

    def _forget(self, is_over: Callable[[V], bool]) -> None:
        for key in [*islice(self.values, FORGOTTEN)]:
            if not is_over(self.values[key]):
                return
            del self.values[key]
