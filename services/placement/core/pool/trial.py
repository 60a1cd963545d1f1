"""A trial on the board that is taken back; cheaper than a copy of the pool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from services.placement.core.pool.board import Board
from services.placement.core.pool.shape import GPU, Slot


class Trial:
    """Takes and gives slots on the board, and undoes all of it in reverse order."""

    __slots__ = ("board", "log")

    def __init__(self, board: Board) -> None:
        self.board = board
        self.log: list[tuple[Slot, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.rollback()

    def take(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self.board.shift(slot, -1)
            self.log.append((slot, -1))

    def give(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self.board.shift(slot, 1)
            self.log.append((slot, 1))

    def reserve(self, slots: Iterable[Slot]) -> list[Slot]:
        """Take the part of these slots that is free now and return it; the rest is in use."""
        reserved: list[Slot] = []
        for slot in slots:
            node = self.board.nodes[slot.node_id]
            cpu = max(0, min(node.cpu_free, slot.cpu_milli))
            mem = max(0, min(node.mem_free, slot.mem_mib))
            parts = [Slot(slot.node_id, (), GPU, cpu, mem)]
            for gpu in slot.gpus:
                milli = min(node.free[gpu], slot.milli)
                parts.append(Slot(slot.node_id, (gpu,), milli, 0, 0))
            self.take(parts)
            reserved += parts
        return reserved

    def rollback(self, mark: int = 0) -> None:
        """Undo everything since the log was `mark` entries long."""
        while len(self.log) > mark:
            slot, sign = self.log.pop()
            self.board.shift(slot, -sign)
