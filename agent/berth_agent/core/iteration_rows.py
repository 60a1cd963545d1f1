"""The newest iterations of one process of a worker, a row each, and their message as columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from berth_agent.messages import Iterations

MAX_ITERATIONS = 256
"""Rows of one process; the newest are kept."""
MAX_PHASES = 8
TRAIN: Literal["train"] = "train"

Kind = Literal["train", "evaluation", "checkpoint"]


@dataclass(frozen=True, slots=True)
class IterationRow:
    """One iteration, as the reporter sent it."""

    step: int
    iteration_s: float
    own_s: float | None = None
    wait_s: float | None = None
    samples: int | None = None
    tokens: int | None = None
    kind: Kind = TRAIN
    phases: Mapping[str, float] = field(default_factory=dict)
    delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessShape:
    """The part of a training that a process does, as it last reported."""

    layout: Mapping[str, int] = field(default_factory=dict)
    """Position along each axis of parallelism."""
    microbatches: int | None = None
    activations: int | None = None


class IterationRows:
    """The newest iterations of one process, and its part of the training."""

    def __init__(self, rows: Iterable[IterationRow] = ()) -> None:
        self._rows: deque[IterationRow] = deque(rows, maxlen=MAX_ITERATIONS)
        self.shape = ProcessShape()

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, row: IterationRow, shape: ProcessShape) -> None:
        self._rows.append(row)
        self.shape = shape

    def extend(self, later: IterationRows) -> None:
        """Add the rows of the same process that came later."""
        self._rows.extend(later._rows)
        self.shape = later.shape

    def message(self, allocation_id: str, rank: int, process: int) -> Iterations:
        """Return the message; a column that says nothing is left empty."""
        rows = self._rows
        kinds = tuple(row.kind for row in rows)
        return Iterations(
            allocation_id=allocation_id,
            rank=rank,
            process=process,
            iteration_s=tuple(row.iteration_s for row in rows),
            own_s=_column(row.own_s for row in rows),
            wait_s=_column(row.wait_s for row in rows),
            delay_s=_column(row.delay_s for row in rows),
            steps=tuple(row.step for row in rows),
            kinds=kinds if set(kinds) != {TRAIN} else (),
            samples=_column(row.samples for row in rows),
            tokens=_column(row.tokens for row in rows),
            phases={
                name: tuple(row.phases.get(name) for row in rows) for name in self._phase_names()
            },
            layout=dict(self.shape.layout),
            microbatches=self.shape.microbatches,
            activations=self.shape.activations,
        )

    def _phase_names(self) -> list[str]:
        """Return the phases of the newest rows, as many as a message may hold."""
        names: dict[str, None] = {}
        for row in reversed(self._rows):
            names |= dict.fromkeys(row.phases)
        return list(names)[:MAX_PHASES]


def _column(values: Iterable[Any]) -> tuple[Any, ...]:
    column = tuple(values)
    return () if all(value is None for value in column) else column
