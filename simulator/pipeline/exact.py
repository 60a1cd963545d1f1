"""The shortest schedule of a small pipeline, by CP-SAT: what planned schedules are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ortools.sat.python import cp_model

from shared.pipeline.model import Kind, Operation, Orders, Pipeline
from shared.pipeline.timeline import replay, source_of

KINDS: tuple[Kind, ...] = ("F", "B", "W")


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """`bound` is proven: no schedule takes less; it equals `makespan` where that is proven too."""

    makespan: int
    bound: int
    orders: Orders


def shortest(pipeline: Pipeline, hint: Orders, limit_s: float = 10.0) -> ExactPlan:
    """Return the shortest schedule for times that are whole numbers, from a valid one on.

    Micro-batches are alike, so each kind of operation runs in their order.
    """
    model = _Model(pipeline, round(replay(pipeline, hint).makespan))
    model.hint(hint)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = limit_s
    status = solver.solve(model.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return ExactPlan(model.horizon, round(solver.best_objective_bound), hint)
    return ExactPlan(
        round(solver.objective_value), round(solver.best_objective_bound), model.orders(solver)
    )


class _Model:
    """One start per operation; `horizon` is the makespan of a schedule that exists."""

    def __init__(self, pipeline: Pipeline, horizon: int) -> None:
        self.pipeline = pipeline
        self.horizon = horizon
        self.model = cp_model.CpModel()
        self.starts: dict[tuple[int, Operation], Any] = {}
        self._end = self.model.new_int_var(0, horizon, "end")
        for stage in range(pipeline.stages):
            self._add_stage(stage)
        for stage, operation in self.starts:
            self._wait_for_source(stage, operation)
        self.model.minimize(self._end)

    def _add_stage(self, stage: int) -> None:
        intervals = []
        for kind in KINDS:
            duration = round(self.pipeline.duration(stage, kind))
            chain = []
            for microbatch in range(self.pipeline.microbatches):
                start = self.model.new_int_var(0, self.horizon - duration, "")
                self.starts[stage, Operation(kind, microbatch)] = start
                intervals.append(self.model.new_fixed_size_interval_var(start, duration, ""))
                chain.append(start)
            for earlier, later in pairwise(chain):
                self.model.add(later >= earlier + duration)
            self.model.add(self._end >= chain[-1] + duration)
        self.model.add_no_overlap(intervals)
        self._bound_memory(stage)

    def _bound_memory(self, stage: int) -> None:
        bound = self.pipeline.bound(stage)
        backward = round(self.pipeline.backward[stage])
        for microbatch in range(bound, self.pipeline.microbatches):
            freed = self.starts[stage, Operation("B", microbatch - bound)] + backward
            self.model.add(self.starts[stage, Operation("F", microbatch)] >= freed)

    def _wait_for_source(self, stage: int, operation: Operation) -> None:
        source = source_of(self.pipeline, stage, operation)
        if source is not None:
            at, before, delay = source
            ready = round(self.pipeline.duration(at, before.kind) + delay)
            self.model.add(self.starts[stage, operation] >= self.starts[at, before] + ready)

    def hint(self, orders: Orders) -> None:
        for stage, spans in enumerate(replay(self.pipeline, orders).spans):
            for span in spans:
                self.model.add_hint(self.starts[stage, span.operation], round(span.start))

    def orders(self, solver: Any) -> Orders:
        timed: list[list[tuple[int, Operation]]] = [[] for _ in range(self.pipeline.stages)]
        for (stage, operation), start in self.starts.items():
            timed[stage].append((solver.value(start), operation))
        return tuple(tuple(operation for _, operation in sorted(stage)) for stage in timed)
