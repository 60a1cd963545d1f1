"""Fewest engines for a set of adapters: greedy placements, then a local search.

Adapters are placed one after the other on the first engine that still serves all of its own, in
several orders; then the engines with the least load are emptied where the others have room. Rates
are those with headroom. A present plan is kept unless another one needs fewer engines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.llm.adapters.engines import AdapterEngine
from simulator.llm.adapters.loads import AdapterLoad
from simulator.llm.adapters.throughput import LoadSums, feasible_slots, sums_of

Order = Callable[[AdapterLoad], tuple[float, ...]]
ORDERS: tuple[Order, ...] = (
    lambda load: (-load.output_per_s, load.rank),
    lambda load: (-load.rank, -load.output_per_s),
    lambda load: (-load.output_per_s * (load.prompt_tokens + load.output_tokens), load.rank),
)
"""Adapters in order of tokens per s, of rank and then tokens, and of cache that they need."""


class NotServable(ValueError):
    """An engine of its own does not serve the adapter."""


@dataclass(slots=True)
class Bin:
    """An engine of a plan under construction."""

    name: str = ""
    loads: list[AdapterLoad] = field(default_factory=list)
    sums: LoadSums = field(default_factory=LoadSums)

    def add(self, load: AdapterLoad) -> None:
        self.loads.append(load)
        self.sums = self.sums.plus(load)

    def remove(self, load: AdapterLoad) -> None:
        self.loads.remove(load)
        self.sums = sums_of(self.loads) if self.loads else LoadSums()


@dataclass(frozen=True, slots=True)
class Packer:
    """The engine that all bins have, and placements on it."""

    engine: AdapterEngine

    def fits(self, bin_: Bin, load: AdapterLoad) -> bool:
        return bool(feasible_slots(self.engine, bin_.sums.plus(load)))

    def serves(self, bin_: Bin) -> bool:
        return not bin_.loads or bool(feasible_slots(self.engine, bin_.sums))

    def first_fit(self, loads: Iterable[AdapterLoad], bins: list[Bin]) -> list[Bin]:
        """Place each load on the first bin that serves it; open others as needed."""
        for load in loads:
            place = next((bin_ for bin_ in bins if self.fits(bin_, load)), None)
            if place is None:
                place = Bin()
                if not self.fits(place, load):
                    raise NotServable(
                        f"{load.adapter}: {load.rate_per_s:g} requests per s with headroom;"
                        f" a rate that one {self.engine.name} serves is allowed"
                    )
                bins.append(place)
            place.add(load)
        return bins

    def pack(self, loads: Sequence[AdapterLoad]) -> list[Bin]:
        """Return the fewest bins of all orders, after the local search."""
        packed = (self.empty_bins(self.first_fit(sorted(loads, key=order), [])) for order in ORDERS)
        return min(packed, key=len)

    def empty_bins(self, bins: list[Bin], moves: int | None = None) -> list[Bin]:
        """Empty bins, the least loaded first, while the others have room.

        With `moves` no more adapters than that change their engine.
        """
        left = moves
        for bin_ in sorted(bins, key=lambda bin_: bin_.sums.output_per_s):
            others = [other for other in bins if other is not bin_]
            if left is not None and len(bin_.loads) > left:
                continue
            if (placed := self.placed_on(others, bin_.loads)) is not None:
                left = None if left is None else left - len(bin_.loads)
                bins = placed
        return bins

    def placed_on(self, bins: Sequence[Bin], loads: Sequence[AdapterLoad]) -> list[Bin] | None:
        """Return the bins with the loads added, the fullest that serves each; None if none does."""
        copies = [Bin(bin_.name, list(bin_.loads), bin_.sums) for bin_ in bins]
        for load in sorted(loads, key=ORDERS[0]):
            copies.sort(key=lambda bin_: -bin_.sums.output_per_s)
            place = next((bin_ for bin_ in copies if self.fits(bin_, load)), None)
            if place is None:
                return None
            place.add(load)
        return copies


def lower_bound(engine: AdapterEngine, loads: Sequence[AdapterLoad]) -> int:
    """Return a number of engines below which no placement serves the loads, by the estimate.

    One engine serves most output tokens if it has the adapters with the most per running adapter,
    and parts of adapters are allowed; all tokens need at least so many such engines.
    """
    if not loads:
        return 0
    shortest_s = engine.step_s(0, 0)
    most = _most_output_per_s(engine, loads, shortest_s)
    total = sum(load.output_per_s for load in loads)
    return max(1, math.ceil(total / most - 1e-9))


def _most_output_per_s(
    engine: AdapterEngine, loads: Sequence[AdapterLoad], shortest_s: float
) -> float:
    """Return the tokens per s of the best engine, which has no limit but time and its cache."""
    cache = engine.cache_tokens(8, 8)
    held = min(load.prompt_tokens + load.output_tokens for load in loads)
    batch = min(engine.batch_requests, engine.step_tokens, cache / held)
    request_ms = engine.request_ms + engine.step_ms / batch
    running = output = 0.0
    by_gain = sorted(
        ((1 - math.exp(-load.output_per_s * shortest_s), load.output_per_s) for load in loads),
        key=lambda pair: -pair[1] / pair[0],
    )
    for adapters, tokens in by_gain:
        if _busy(engine, request_ms, output + tokens, running + adapters) > 1:
            low, high = 0.0, 1.0
            for _ in range(30):
                part = (low + high) / 2
                busy = _busy(engine, request_ms, output + part * tokens, running + part * adapters)
                low, high = (part, high) if busy <= 1 else (low, part)
            return output + high * tokens
        running, output = running + adapters, output + tokens
    return max(output, 1e-12)


def _busy(engine: AdapterEngine, request_ms: float, output_per_s: float, running: float) -> float:
    """Return the share of its time that an engine with a full batch needs for the tokens."""
    percent = engine.adapter_percent * running + engine.lora_percent
    return output_per_s * request_ms * percent / 1e5


def kept_plan(
    packer: Packer,
    loads: Sequence[AdapterLoad],
    present: Mapping[str, Sequence[str]],
    most_moves: int,
) -> list[Bin]:
    """Return the present plan with the fewest changes, unless another one saves engines.

    An engine that no longer serves its adapters loses the largest until it does; those and new
    adapters are placed where there is room. Then engines are emptied, or a new plan is taken,
    if that saves one with at most `most_moves` moves.
    """
    by_name = {load.adapter: load for load in loads}
    bins, homeless = [], dict(by_name)
    for name, adapters in present.items():
        bin_ = Bin(name)
        for adapter in adapters:
            if adapter in homeless:
                bin_.add(homeless.pop(adapter))
        bins.append(bin_)
    for bin_ in bins:
        while not packer.serves(bin_):
            load = max(bin_.loads, key=lambda load: load.output_per_s)
            bin_.remove(load)
            homeless[load.adapter] = load
    repaired = packer.first_fit(sorted(homeless.values(), key=ORDERS[0]), bins)
    repaired = packer.empty_bins([bin_ for bin_ in repaired if bin_.loads], most_moves)
    fresh = named_after(packer.pack(loads), present)
    saves = len(fresh) < len(repaired)
    return fresh if saves and len(moves_of(fresh, present)) <= most_moves else repaired


def named_after(bins: list[Bin], present: Mapping[str, Sequence[str]]) -> list[Bin]:
    """Give bins the names of present engines with which they share most adapters."""
    pairs = sorted(
        (-len({load.adapter for load in bin_.loads} & set(adapters)), name, place)
        for place, bin_ in enumerate(bins)
        for name, adapters in present.items()
    )
    taken: set[str] = set()
    for shared, name, place in pairs:
        if shared and not bins[place].name and name not in taken:
            bins[place].name = name
            taken.add(name)
    return bins


def moves_of(
    bins: Sequence[Bin], present: Mapping[str, Sequence[str]]
) -> list[tuple[str, str, str]]:
    """Return adapter, engine of before and engine of the plan, for adapters that move."""
    before = {adapter: name for name, adapters in present.items() for adapter in adapters}
    return sorted(
        (load.adapter, before[load.adapter], bin_.name)
        for bin_ in bins
        for load in bin_.loads
        if load.adapter in before and before[load.adapter] != bin_.name
    )
