"""Builds the orders of a zero-bubble schedule: warm-up forwards, then the best ready operation.

At each instant at which a stage is free it runs, of the operations with their input there, `B`
before `F` before `W`, low micro-batches first: a later stage or an earlier one waits for the first
two, and `W` fills what would be idle. `F` runs only while fewer activations are held than
the stage's warm-up count, so that this count bounds its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf

from shared.pipeline.model import Kind, Operation, Orders, Pipeline


@dataclass(slots=True)
class _Stage:
    """`forward_at` and `backward_at` are when the inputs of the micro-batches arrive."""

    warmup: int
    forward_at: list[float]
    backward_at: list[float]
    free_at: float = 0.0
    done: dict[Kind, int] = field(default_factory=lambda: {"F": 0, "B": 0, "W": 0})
    order: list[Operation] = field(default_factory=list)

    def next_at(self, kind: Kind, now: float) -> float:
        """Return when the next operation of the kind can start; inf while that is not known."""
        index = self.done[kind]
        if kind == "W":
            return now if index < self.done["B"] else inf
        arrivals = self.forward_at if kind == "F" else self.backward_at
        if index == len(arrivals):
            return inf
        if kind == "F" and index - self.done["B"] >= self.warmup:
            return inf
        return arrivals[index]


@dataclass(frozen=True, slots=True)
class Preferences:
    """Rules of a dispatcher, which decide where several operations are ready."""

    first: Kind = "B"
    """`B`, or `F` where it is better to feed a distant stage early."""
    patience: float = 0.0
    """Part of the duration of `W` for which a stage waits for another operation instead of it."""


def dispatch(
    pipeline: Pipeline, warmup: Sequence[int], preferences: Preferences | None = None
) -> Orders:
    """Return the orders for these warm-up counts, none of which may exceed that before it."""
    run = _Dispatcher(pipeline, warmup, preferences or Preferences())
    return run.orders()


class _Dispatcher:
    """Simulates the stages and records what each runs."""

    def __init__(self, pipeline: Pipeline, warmup: Sequence[int], preferences: Preferences) -> None:
        self._pipeline = pipeline
        self._patience = preferences.patience
        self._ranked: tuple[Kind, ...] = (
            ("B", "F", "W") if preferences.first == "B" else ("F", "B", "W")
        )
        count_ = pipeline.microbatches
        self._stages = [_Stage(min(x, count_), [inf] * count_, [inf] * count_) for x in warmup]
        self._stages[0].forward_at = [0.0] * count_
        self._ticks = count()
        self._events: list[tuple[float, int, int]] = []

    def orders(self) -> Orders:
        self._wake(0, 0.0)
        while self._events:
            now, _, stage = heappop(self._events)
            self._offer(stage, now)
        return tuple(tuple(stage.order) for stage in self._stages)

    def _wake(self, stage: int, at: float) -> None:
        heappush(self._events, (at, next(self._ticks), stage))

    def _offer(self, index: int, now: float) -> None:
        """Start the best operation if the stage is free; else it is offered again when it is."""
        stage = self._stages[index]
        if stage.free_at > now:
            return
        kind = self._choose(index, now)
        if kind is not None:
            self._run(index, kind, now)

    def _choose(self, index: int, now: float) -> Kind | None:
        stage = self._stages[index]
        if stage.done["F"] < stage.warmup:
            return "F" if stage.next_at("F", now) <= now else None
        for kind in self._ranked:
            if stage.next_at(kind, now) <= now:
                return None if kind == "W" and self._is_worth_waiting(index, now) else kind
        return None

    def _is_worth_waiting(self, index: int, now: float) -> bool:
        """Return whether another operation can start soon; it wakes the stage, as its input
        arrives.
        """
        stage = self._stages[index]
        soonest = min(stage.next_at("F", now), stage.next_at("B", now))
        return soonest < now + self._patience * self._pipeline.weight[index]

    def _run(self, index: int, kind: Kind, now: float) -> None:
        stage = self._stages[index]
        microbatch = stage.done[kind]
        stage.order.append(Operation(kind, microbatch))
        stage.done[kind] += 1
        end = stage.free_at = now + self._pipeline.duration(index, kind)
        if kind == "F":
            self._pass_forward(index, microbatch, end)
        elif kind == "B" and index:
            at = end + self._pipeline.link_delay[index - 1]
            self._stages[index - 1].backward_at[microbatch] = at
            self._wake(index - 1, at)
        self._wake(index, end)

    def _pass_forward(self, index: int, microbatch: int, end: float) -> None:
        if index == self._pipeline.stages - 1:
            self._stages[index].backward_at[microbatch] = end
            return
        at = end + self._pipeline.link_delay[index]
        self._stages[index + 1].forward_at[microbatch] = at
        self._wake(index + 1, at)
