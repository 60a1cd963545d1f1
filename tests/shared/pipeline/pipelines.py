"""Pipelines and operations for tests."""

from __future__ import annotations

from collections.abc import Sequence

from shared.pipeline.model import Operation, Pipeline, checked


def F(microbatch: int) -> Operation:
    return Operation("F", microbatch)


def B(microbatch: int) -> Operation:
    return Operation("B", microbatch)


def W(microbatch: int) -> Operation:
    return Operation("W", microbatch)


def balanced(
    stages: int, microbatches: int, delays: Sequence[float], memory: Sequence[int] = ()
) -> Pipeline:
    """Return a pipeline of which each operation takes 10."""
    return checked(stages, microbatches, [10], [10], [10], delays, memory)
