"""Partial allocation: a proportionally fair choice among bids, and what each winner keeps of it.

Themis (Mahajan et al., NSDI'20), after Cole, Gkatzelis and Goel (EC'13): the choice maximises the
product of valuations; a winner keeps the part by which the others' product is lower than it would
be without the winner, so that a false bid gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from ortools.sat.python import cp_model

from shared.schedulers.hooks import Allotment

Bids: TypeAlias = Mapping[str, Mapping[Allotment, float]]
"""By bidder, the valuation of each allotment that it can use; above 0."""
Choice: TypeAlias = dict[str, Allotment]

EMPTY = 1e-6
"""Valuation of nothing: its finish time is unbounded, and the product is above 0."""
UNITS = 100_000
DETERMINISTIC_LIMIT = 1.0


def proportionally_fair(bids: Bids, free: Mapping[str, int]) -> Choice:
    """Return the allotment of each winner; free GPUs by type suffice for all of them."""
    model: Any = cp_model.CpModel()
    used: dict[str, list[Any]] = {name: [] for name in free}
    picks: dict[tuple[str, Allotment], Any] = {}
    terms = []
    for bidder, valuations in bids.items():
        own = []
        for allotment, valuation in valuations.items():
            pick = model.new_bool_var("")
            picks[bidder, allotment] = pick
            own.append(pick)
            used[allotment.gpu_type].append(allotment.gpus * pick)
            terms.append(round(UNITS * math.log(valuation / EMPTY)) * pick)
        model.add_at_most_one(own)
    for name, gpus in free.items():
        model.add(sum(used[name]) <= gpus)
    model.maximize(sum(terms))
    solver: Any = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = DETERMINISTIC_LIMIT
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE), "nothing for any bidder is feasible"
    return {bidder: own for (bidder, own), pick in picks.items() if solver.boolean_value(pick)}


def kept_parts(bids: Bids, free: Mapping[str, int], choice: Choice) -> dict[str, float]:
    """Return the part, at most 1, that each winner keeps of its allotment."""
    best = {bidder: max(own.values(), default=EMPTY) for bidder, own in bids.items()}
    if all(valuation_of(bids, choice, bidder) == best[bidder] for bidder in bids):
        return dict.fromkeys(choice, 1.0)
    return {
        bidder: min(1.0, math.exp(others(bids, choice, bidder) - without(bids, free, bidder)))
        for bidder in choice
    }


def without(bids: Bids, free: Mapping[str, int], bidder: str) -> float:
    """Return the logarithm of the others' product if the bidder were not there."""
    rest = {name: own for name, own in bids.items() if name != bidder}
    return others(rest, proportionally_fair(rest, free), bidder)


def others(bids: Bids, choice: Choice, bidder: str) -> float:
    """Return the logarithm of the product of all valuations but the bidder's."""
    return math.fsum(math.log(valuation_of(bids, choice, name)) for name in bids if name != bidder)


def valuation_of(bids: Bids, choice: Choice, bidder: str) -> float:
    return bids[bidder][choice[bidder]] if bidder in choice else EMPTY
