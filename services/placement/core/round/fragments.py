"""Places workers where the fewest free GPUs become of no use for what arrives: `packing=fragments`.

Fragmentation gradient descent (`gpu_parts`) for parts of GPUs and for gangs of one worker; larger
gangs, and rounds where nodes differ for a worker by label, health or a failed attempt, go by best
fit. What arrives is taken to be like the last workers that were placed.
"""

from __future__ import annotations

from collections.abc import Mapping

from services.placement.core.gpu_parts.demand import Demand
from services.placement.core.gpu_parts.nodes import NodeTable
from services.placement.core.gpu_parts.placer import ScoredPlacer
from services.placement.core.gpu_parts.scores import FragmentationDescent, LargestNode
from services.placement.core.pool.board import Board
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import Avoid, place

MOST_CLASSES = 64
"""Most frequent needs that a node is judged by: time and memory grow with nodes and needs, and a
tenant can have each worker request something else."""


class FragmentPacking:
    """Places the gangs of one round; a table of the nodes follows the trial of the round."""

    def __init__(self, counts: Mapping[Shape, int]) -> None:
        self._counts = counts
        self._table: TrialTable | None = None

    def place(self, trial: Trial, shape: Shape, avoid: Avoid) -> list[Slot]:
        """Take slots for the gang on the trial and return them; none if its least does not fit."""
        is_alone = shape.gpus > 0 and (shape.is_share or shape.max_workers == 1)
        if not is_alone or avoid or shape.selector or shape.nodes or trial.board.slow:
            return place(trial, shape, avoid)
        if self._table is None or self._table.trial is not trial:
            self._table = TrialTable(trial, self._counts)
        mark, slots = len(trial.log), list[Slot]()
        while len(slots) < shape.max_workers and (slot := self._table.best(shape)) is not None:
            trial.take([slot])
            slots.append(slot)
        if len(slots) < shape.min_workers:
            trial.rollback(mark)
            return []
        return slots


class TrialTable:
    """The nodes of a trial's board as arrays, with the scores of each class of workers."""

    def __init__(self, trial: Trial, counts: Mapping[Shape, int]) -> None:
        self.trial = trial
        self._names = sorted(name for name, node in trial.board.nodes.items() if node.indexed)
        self._rows = {name: row for row, name in enumerate(self._names)}
        self._table = NodeTable.of([trial.board.nodes[name].kind for name in self._names])
        largest = LargestNode.of(self._table) if self._names else LargestNode(0, 0)
        score = FragmentationDescent(Demand.of_counts(counts, most=MOST_CLASSES), largest)
        self._placer = ScoredPlacer(score)
        self._log: list[tuple[Slot, int]] = list(trial.log)
        for name in self._names:
            self._read(trial.board, name)

    def best(self, shape: Shape) -> Slot | None:
        """Return the best slot for one worker; None if it fits nowhere. Nothing is taken."""
        self._follow()
        worker = shape._replace(min_workers=1, max_workers=1)
        best_place = self._placer.place(self._table, worker)
        if best_place is None:
            return None
        name = self._names[best_place.row]
        return Slot(name, best_place.gpus, shape.milli, shape.cpu_milli, shape.mem_mib)

    def _follow(self) -> None:
        """Read anew the nodes on which the trial took or gave something since the last look.

        The trial's log is a stack: what both logs have in common is their beginning.
        """
        low, high = 0, min(len(self._log), len(self.trial.log))
        while low < high:
            middle = (low + high) // 2
            if self._log[middle] is self.trial.log[middle]:
                low = middle + 1
            else:
                high = middle
        entries = self._log[low:] + self.trial.log[low:]
        for name in dict.fromkeys(slot.node_id for slot, _ in entries):
            self._read(self.trial.board, name)
        self._log[low:] = self.trial.log[low:]

    def _read(self, board: Board, name: str) -> None:
        row = self._rows.get(name)
        if row is not None:
            node = board.nodes[name]
            self._table.note_free(row, node.free, node.cpu_free, node.mem_free)
