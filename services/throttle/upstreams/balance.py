"""The choice of an upstream for a request: pure, chance comes as an argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Protocol, TypeVar

BOUND = 1.25
"""A prefix goes elsewhere if its upstream would have more than this multiple of its fair share."""


class BalanceTarget(Protocol):
    """An upstream as the choice sees it."""

    @property
    def name(self) -> str: ...
    @property
    def weight(self) -> float: ...
    @property
    def drained(self) -> bool: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def max_requests(self) -> int: ...
    @property
    def foreign(self) -> int:
        """Requests of others that the engine reported when it was last probed."""
        ...

    @property
    def turn(self) -> float:
        """Virtual time of its next request among equally loaded ones."""
        ...


TargetT = TypeVar("TargetT", bound=BalanceTarget)


def has_room(target: BalanceTarget) -> bool:
    """Return whether the upstream takes another request."""
    return not target.drained and target.in_flight < target.max_requests


def load_of(target: BalanceTarget) -> float:
    """Return the requests that the engine has per unit of weight."""
    return (target.in_flight + target.foreign) / target.weight


def least_loaded(targets: Sequence[TargetT]) -> TargetT | None:
    """Return the target with the fewest requests per weight; equal ones take turns."""
    best: TargetT | None = None
    best_rank: tuple[float, float, str] | None = None
    for target in targets:
        if not has_room(target):
            continue
        rank = (load_of(target), target.turn, target.name)
        if best_rank is None or rank < best_rank:
            best, best_rank = target, rank
    return best


def two_choices(targets: Sequence[TargetT], draw: Callable[[], float]) -> TargetT | None:
    """Return the less loaded of two that are drawn by weight; `draw` returns 0 <= x < 1.

    Several proxies that all see the same loads do not all choose the same target.
    """
    open_targets = [target for target in targets if has_room(target)]
    if len(open_targets) <= 2:
        return least_loaded(open_targets)
    first = _by_weight(open_targets, draw())
    second = _by_weight([target for target in open_targets if target is not first], draw())
    return least_loaded((first, second))


def _by_weight(targets: Sequence[TargetT], point: float) -> TargetT:
    rest = point * sum(target.weight for target in targets)
    for target in targets:
        rest -= target.weight
        if rest < 0:
            return target
    return targets[-1]


def prefix_affine(targets: Sequence[TargetT], key: str) -> TargetT | None:
    """Return the target to which the key belongs, or the next one that is not overfull.

    Rendezvous hashing: if a target leaves, only its own keys move. The bound on the load keeps
    one popular prefix from filling one engine while others idle.
    """
    open_targets = [target for target in targets if has_room(target)]
    if not key or len(open_targets) <= 1:
        return least_loaded(open_targets)
    requests = 1 + sum(target.in_flight + target.foreign for target in open_targets)
    share = BOUND * requests / sum(target.weight for target in open_targets)
    below = [
        target
        for target in open_targets
        if target.in_flight + target.foreign < math.ceil(share * target.weight)
    ]
    return max(below, key=lambda target: affinity(target.name, target.weight, key))


def affinity(name: str, weight: float, key: str) -> float:
    """Return the score of a target for a key; the highest gets it, as often as its weight says."""
    digest = blake2b(f"{name}\0{key}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
    # 52 bits: with more, the greatest would be rounded to 1, of which the logarithm is 0.
    point = ((int.from_bytes(digest, "big") >> 12) + 0.5) / 2**52
    return -weight / math.log(point)
