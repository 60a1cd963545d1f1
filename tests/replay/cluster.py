"""The deciders of a pool and a virtual executor on the in-memory broker: no processes, no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from services.admission.core.decide import Admission
from services.executor.core.virtual.inventory import InventoryNode
from services.placement.core.decide import Placement
from services.priority.core.decide import Priority
from shared.contracts.pools import PoolConfigured
from shared.contracts.topics import INPUTS
from shared.ledger.decider import Decider
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from simulator.engine.lane import LANE, DecideCall
from simulator.engine.world import World

__all__ = ["DECIDERS", "LANE", "Cluster", "DecideCall"]

DECIDERS: tuple[Callable[[], Decider[Any]], ...] = (Admission, Priority, Placement)
TICK_MS = 20
"""Inputs within a tick are one batch, as in the window of a service."""


class Cluster(World):
    """A world that records every call, with the ticks of a live service."""

    def __init__(
        self, pool: PoolConfigured, tenants: Iterable[str], nodes: dict[str, InventoryNode]
    ) -> None:
        super().__init__(pool, tenants, nodes, ledgers=True, recorded=True, tick_ms=TICK_MS)

    def append_bytes(self, value: bytes) -> None:
        """Append bytes to the commands, which each reader's own decoder handles."""
        tp = TP("commands", LANE)
        offset = self._offset(tp.topic)
        if self.ledgers:
            self.ledgers.broker.append(tp, value)
        for lane in self.lanes.values():
            if tp.topic in INPUTS[lane.ledger]:
                lane.advance_input(tp.topic, offset + 1)
                for item in InputDecoder(lane.ledger).decode_plain(tp, offset, value):
                    lane.give(tp.topic, item)

    def settle(self) -> None:
        busy = True
        while busy:
            busy = False
            for cell in self.lanes.values():
                if cell.has_work(self.now):
                    self._step(cell)
                    busy = True
            if self.executor.has_work(self.now):
                self._step_executor()
                busy = True
