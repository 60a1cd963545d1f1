"""A pipeline: its stages, the time of each operation, the delay of each link, and its memory.

A micro-batch passes forward (`F`) through all stages, then backward: `B` is the gradient of the
input, which the stage before waits for, `W` that of the weights, for which no stage waits. A link
delays each message by a fixed time and occupies no stage. An activation is held from the start of
`F` to the end of `B`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, NamedTuple

Kind = Literal["F", "B", "W"]
MOST_STAGES = 256
MOST_MICROBATCHES = 4096
MOST_CELLS = 65_536
"""Micro-batches of all stages: a bound on the time that a plan takes."""


class PipelineError(ValueError):
    """A pipeline that cannot be scheduled; the message names field, value and rule."""


class Operation(NamedTuple):
    """One operation of a stage."""

    kind: Kind
    microbatch: int


Orders = tuple[tuple[Operation, ...], ...]
"""The operations of each stage, in the order in which it runs them."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Times are in one unit of the caller's choice, such as ms; use `checked` for input of users.

    `memory` is the largest number of activations that each stage can hold, None without a bound.
    """

    microbatches: int
    forward: tuple[float, ...]
    backward: tuple[float, ...]
    weight: tuple[float, ...]
    link_delay: tuple[float, ...]
    memory: tuple[int, ...] | None = None

    @property
    def stages(self) -> int:
        return len(self.forward)

    def duration(self, stage: int, kind: Kind) -> float:
        match kind:
            case "F":
                return self.forward[stage]
            case "B":
                return self.backward[stage]
            case "W":
                return self.weight[stage]

    def bound(self, stage: int) -> int:
        """Return how many activations the stage can hold; no schedule holds more than all."""
        if self.memory is None:
            return self.microbatches
        return min(self.memory[stage], self.microbatches)


def checked(
    stages: int,
    microbatches: int,
    forward: Sequence[float],
    backward: Sequence[float],
    weight: Sequence[float],
    link_delay: Sequence[float],
    memory: Sequence[int] = (),
) -> Pipeline:
    """Return the pipeline; one number stands for all stages or links. Raises `PipelineError`."""
    _check_count("stages", stages, 1, MOST_STAGES)
    _check_count("microbatches", microbatches, 1, MOST_MICROBATCHES)
    if stages * microbatches > MOST_CELLS:
        rule = f"stages x microbatches is at most {MOST_CELLS}"
        raise PipelineError(f"microbatches: {microbatches} with {stages} stages; {rule}")
    for bound in memory:
        _check_count("memory", bound, 1, MOST_MICROBATCHES)
    return Pipeline(
        microbatches,
        _times("forward", forward, stages, positive=True),
        _times("backward", backward, stages, positive=True),
        _times("weight", weight, stages, positive=False),
        _times("link_delay", link_delay or (0.0,), stages - 1, positive=False),
        tuple(int(bound) for bound in _spread("memory", memory, stages)) if memory else None,
    )


def _check_count(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise PipelineError(f"{field}: {value} is not between {least} and {most}")


def _times(field: str, values: Sequence[float], count: int, *, positive: bool) -> tuple[float, ...]:
    for value in values:
        if not isfinite(value) or value < 0 or (positive and value == 0):
            rule = "a positive finite number" if positive else "a finite number of 0 or more"
            raise PipelineError(f"{field}: {value:g} is not {rule}")
    return _spread(field, values, count)


def _spread(field: str, values: Sequence[float], count: int) -> tuple[float, ...]:
    """Return one value per stage or link."""
    if len(values) == 1:
        return tuple(values) * count
    if len(values) != count:
        raise PipelineError(f"{field}: {len(values)} values; the rule is 1 or {count}")
    return tuple(values)
