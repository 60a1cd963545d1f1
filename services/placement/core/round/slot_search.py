"""Places gangs one after another, and tries no gang that cannot fit after one that did not."""

from __future__ import annotations

from collections.abc import Callable

from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import Avoid, place, too_few

PlaceGang = Callable[[Trial, Shape, Avoid], list[Slot]]


class SlotSearch:
    """The search for slots on one trial, on which slots are only taken."""

    def __init__(self, trial: Trial, place: PlaceGang = place) -> None:
        self._trial = trial
        self._place = place
        self._failures = Failures()

    def place(self, shape: Shape, avoid: Avoid) -> list[Slot]:
        """Take slots for the gang on the trial and return them; none if it does not fit."""
        if too_few(self._trial.board, shape) or self._failures.covers(shape, avoid):
            return []
        slots = self._place(self._trial, shape, avoid)
        if not slots:
            self._failures.add(shape, avoid)
        return slots

    def has_room(self, shape: Shape, avoid: Avoid) -> bool:
        """Return whether the gang fits; nothing stays taken."""
        mark = len(self._trial.log)
        slots = self.place(shape, avoid)
        self._trial.rollback(mark)
        return bool(slots)


class Failures:
    """Shapes that did not fit in this round: one that needs no less need not be tried again."""

    MOST = 32

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[object, list[tuple[int, int, int, int]]] = {}

    def covers(self, shape: Shape, where: object) -> bool:
        failed = (
            self.known.get((shape.types, shape.selector, shape.nodes, where))
            if self.known
            else None
        )
        if failed is None:
            return False
        need = (shape.worker_milli, shape.cpu_milli, shape.mem_mib, shape.min_workers)
        return need in failed or any(
            a <= need[0] and b <= need[1] and c <= need[2] and d <= need[3] for a, b, c, d in failed
        )

    def add(self, shape: Shape, where: object) -> None:
        failed = self.known.setdefault((shape.types, shape.selector, shape.nodes, where), [])
        if len(failed) < self.MOST:
            need = (shape.worker_milli, shape.cpu_milli, shape.mem_mib, shape.min_workers)
            failed.append(need)
