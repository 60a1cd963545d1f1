"""The exact time of each operation, for fixed orders: every start is that of its last condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shared.pipeline.model import Kind, Operation, Orders, Pipeline


class Span(NamedTuple):
    """One operation and its time."""

    operation: Operation
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A schedule with times, per stage in the order of the stage."""

    spans: tuple[tuple[Span, ...], ...]

    @property
    def makespan(self) -> float:
        return max(stage[-1].end for stage in self.spans)

    def peak_activations(self) -> tuple[int, ...]:
        """Return the largest number of activations that each stage holds at once."""
        return tuple(_peak(stage, "F", "B") for stage in self.spans)

    def peak_weight_gradients(self) -> tuple[int, ...]:
        """Return how many micro-batches of each stage wait for `W` at most; they hold memory too.

        It is 0 where `W` is a part of the backward operation.
        """
        return tuple(
            _peak(stage, "B", "W") if any(s.operation.kind == "W" for s in stage) else 0
            for stage in self.spans
        )

    def idle_share(self) -> float:
        """Return the part of all stages' time in which they compute nothing."""
        busy = sum(span.end - span.start for stage in self.spans for span in stage)
        return 1 - busy / (self.makespan * len(self.spans))


def _peak(stage: tuple[Span, ...], opens: Kind, closes: Kind) -> int:
    held = peak = 0
    for span in stage:
        held += (span.operation.kind == opens) - (span.operation.kind == closes)
        peak = max(peak, held)
    return peak


def replay(pipeline: Pipeline, orders: Orders, *, merged: bool = False) -> Timeline:
    """Return the timeline of the orders. `merged`: `B` computes both gradients, as in 1F1B.

    Raises `ValueError` where the orders wait for each other in a circle.
    """
    run = _Replay(pipeline, orders, merged)
    waiting = list(range(pipeline.stages))
    while waiting:
        stage = waiting.pop()
        if run.advance(stage):
            waiting += [near for near in (stage - 1, stage + 1) if 0 <= near < pipeline.stages]
    if any(len(spans) < len(order) for spans, order in zip(run.spans, orders, strict=True)):
        raise ValueError("the orders of the stages wait for each other")
    return Timeline(tuple(tuple(spans) for spans in run.spans))


class _Replay:
    """Ends of the operations of each stage so far."""

    def __init__(self, pipeline: Pipeline, orders: Orders, merged: bool) -> None:
        self._pipeline = pipeline
        self._orders = orders
        self._merged = merged
        self.spans: list[list[Span]] = [[] for _ in orders]
        self._ends: list[dict[Operation, float]] = [{} for _ in orders]

    def advance(self, stage: int) -> bool:
        """Run the stage's operations until one has to wait; return whether there was any."""
        order, spans, ends = self._orders[stage], self.spans[stage], self._ends[stage]
        before = len(spans)
        while len(spans) < len(order):
            operation = order[len(spans)]
            ready = self._ready(stage, operation)
            if ready is None:
                break
            start = max(ready, spans[-1].end if spans else 0.0)
            end = start + self._duration(stage, operation.kind)
            spans.append(Span(operation, start, end))
            ends[operation] = end
        return len(spans) > before

    def _ready(self, stage: int, operation: Operation) -> float | None:
        """Return when the input is there; None while the operation before it has not run."""
        source = source_of(self._pipeline, stage, operation)
        if source is None:
            return 0.0
        at, before, delay = source
        end = self._ends[at].get(before)
        return None if end is None else end + delay

    def _duration(self, stage: int, kind: Kind) -> float:
        own = self._pipeline.duration(stage, kind)
        return own + self._pipeline.weight[stage] if self._merged and kind == "B" else own


def source_of(
    pipeline: Pipeline, stage: int, operation: Operation
) -> tuple[int, Operation, float] | None:
    """Return stage, operation and delay of the input; None for the first forward operation."""
    kind, microbatch = operation
    if kind == "W":
        return stage, Operation("B", microbatch), 0.0
    if kind == "F":
        delay = pipeline.link_delay[stage - 1] if stage else 0.0
        return (stage - 1, operation, delay) if stage else None
    if stage == pipeline.stages - 1:
        return stage, Operation("F", microbatch), 0.0
    return stage + 1, operation, pipeline.link_delay[stage]
