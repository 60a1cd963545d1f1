"""A broker that lost the last writes of its disk."""

from __future__ import annotations

from shared.bus.logs.memory import MemoryBroker
from shared.ledger.partition import TP


def cut_tail(broker: MemoryBroker, tp: TP, end: int) -> None:
    """Drop the acknowledged records from `end` on."""
    del broker.entries(tp)[end:]
