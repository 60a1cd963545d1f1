"""Other placements: each gets the fewest engines with which the estimate finds it served."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.llm.adapters.loads import AdapterLoad
from simulator.llm.adapters.plan import Bin, Packer

Placed = list[list[AdapterLoad]]


def round_robin(loads: Sequence[AdapterLoad], engines: int) -> Placed:
    return [list(loads[place::engines]) for place in range(engines)]


def balance(loads: Sequence[AdapterLoad], engines: int) -> Placed:
    """Place the largest load first, on the engine with the least (as dLoRA balances)."""
    placed: Placed = [[] for _ in range(engines)]
    totals = [0.0] * engines
    for load in sorted(loads, key=lambda load: -load.output_per_s):
        place = totals.index(min(totals))
        placed[place].append(load)
        totals[place] += load.output_per_s
    return placed


def first_fit_by_rate(loads: Sequence[AdapterLoad], engines: int) -> Placed:
    """Fill engines in the order of names up to a rate, the same for all."""
    most = sum(load.rate_per_s for load in loads) / engines
    placed: Placed = [[]]
    totals = [0.0]
    limit = most + max(load.rate_per_s for load in loads)
    for load in loads:
        place = next((n for n, rate in enumerate(totals) if rate + load.rate_per_s <= limit), None)
        if place is None:
            placed.append([])
            totals.append(0.0)
            place = len(totals) - 1
        placed[place].append(load)
        totals[place] += load.rate_per_s
    return placed


BASELINES: dict[str, Callable[[Sequence[AdapterLoad], int], Placed]] = {
    "first_fit_by_rate": first_fit_by_rate,
    "round_robin": round_robin,
    "balance": balance,
}


def engines_needed(packer: Packer, name: str, loads: Sequence[AdapterLoad], least: int) -> int:
    """Return the number of engines that the baseline needs; `len(loads)` if none serves."""
    for engines in range(least, len(loads) + 1):
        placed = BASELINES[name](loads, engines)
        bins = [_bin(loads_) for loads_ in placed if loads_]
        if all(packer.serves(bin_) for bin_ in bins):
            return len(bins)
    return len(loads)


def _bin(loads: Sequence[AdapterLoad]) -> Bin:
    bin_ = Bin()
    for load in loads:
        bin_.add(load)
    return bin_
