"""A partition of a topic."""

from __future__ import annotations

from typing import NamedTuple


class TP(NamedTuple):
    topic: str
    partition: int

    @property
    def key(self) -> str:
        """Its name in an input vector."""
        return f"{self.topic}-{self.partition}"
