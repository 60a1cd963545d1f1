"""A plan that the twin has checked: engines with adapters, slots, load and margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from simulator.llm.adapters.engines import AdapterEngine
from simulator.llm.adapters.loads import AdapterLoad, draw_requests
from simulator.llm.adapters.plan import Bin, Packer, kept_plan, lower_bound, moves_of
from simulator.llm.adapters.throughput import capacity_of
from simulator.llm.adapters.twin import Twin, TwinReport

LEAST_SERVED = 0.99
MOST_WAIT_S = 30.0
SPAN_S = 600.0
TIGHTER = (1.0, 1.05, 1.1, 1.2)
"""Factors of the rates of further plans, where the twin does not confirm an engine."""


@dataclass(frozen=True, slots=True)
class PlannedEngine:
    """One engine of a plan; figures of the twin are at the rates with headroom."""

    name: str
    adapters: tuple[str, ...]
    slots: int
    max_rank: int
    load_ratio: float
    """Rates of the adapters, of those that the engine serves by the estimate."""
    kv_tokens: int
    served_ratio: float
    oldest_wait_s: float
    oldest_adapter: str
    confirmed: bool

    @property
    def margin(self) -> float:
        """By how much the rates may grow, by the estimate: 0.2 is 20 %."""
        return 1 / self.load_ratio - 1


@dataclass(frozen=True, slots=True)
class Placement:
    """Engines for all adapters, and the moves from the present plan to it."""

    engines: tuple[PlannedEngine, ...]
    lower_bound: int
    moves: tuple[tuple[str, str, str], ...] = ()

    @property
    def confirmed(self) -> bool:
        return all(engine.confirmed for engine in self.engines)


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans for one kind of engine."""

    engine: AdapterEngine
    headroom: float = 0.2
    most_moves: int = 16
    seed: int = 0
    span_s: float = SPAN_S
    most_wait_s: float = MOST_WAIT_S
    present: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def place(self, loads: Sequence[AdapterLoad]) -> Placement:
        """Return the first plan that the twin confirms, else the last.

        Raises NotServable for an adapter that an engine of its own does not serve.
        """
        for factor in TIGHTER:
            bins = self.bins((1 + self.headroom) * factor, loads)
            by_name = {load.adapter: load for load in loads}
            engines = tuple(
                self.checked(bin_, [by_name[load.adapter] for load in bin_.loads]) for bin_ in bins
            )
            scaled = [load.scaled(1 + self.headroom) for load in loads]
            placement = Placement(
                engines, lower_bound(self.engine, scaled), tuple(moves_of(bins, self.present))
            )
            if placement.confirmed:
                break
        return placement

    def bins(self, factor: float, loads: Sequence[AdapterLoad]) -> list[Bin]:
        scaled, packer = [load.scaled(factor) for load in loads], Packer(self.engine)
        if self.present:
            bins = kept_plan(packer, scaled, self.present, self.most_moves)
        else:
            bins = packer.pack(scaled)
        free = (
            name
            for n in range(1, len(loads) + len(self.present) + 1)
            if (name := f"engine-{n}") not in self.present
        )
        for bin_ in bins:
            bin_.name = bin_.name or next(free)
        return bins

    def checked(self, bin_: Bin, loads: Sequence[AdapterLoad]) -> PlannedEngine:
        """Serve the loads with headroom by the twin."""
        capacity = capacity_of(self.engine, loads)
        report = self.twin_report(capacity.slots, loads)
        max_rank = max(load.rank for load in loads)
        return PlannedEngine(
            bin_.name,
            tuple(sorted(load.adapter for load in loads)),
            capacity.slots,
            max_rank,
            capacity.load_ratio,
            self.engine.cache_tokens(capacity.slots, max_rank),
            report.served_ratio,
            report.oldest_wait_s,
            report.oldest_adapter,
            not report.starves(LEAST_SERVED, self.most_wait_s),
        )

    def twin_report(self, slots: int, loads: Sequence[AdapterLoad]) -> TwinReport:
        scaled = [load.scaled(1 + self.headroom) for load in loads]
        requests = draw_requests(scaled, self.span_s, self.seed)
        return Twin(self.engine, slots, scaled).run(requests, self.span_s)
