"""Validation of suspicious groups: which pairs to measure in which round, and what they show.

Each rank runs the same computation once. Then the neighbours in the ring of each suspicious group
exchange data, in rounds in which no rank takes part twice: two for a ring of an even number of
ranks, three for an odd one, whatever its length. Groups of one axis share no rank, so they are
measured side by side; the rounds are at most nine for all three axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.failslow.core.diagnosis.layout import AXES, Group

Pair = tuple[int, int]
"""Sender and receiver."""


@dataclass(frozen=True, slots=True)
class Round:
    """Pairs that are measured at the same time; no rank is in two of them."""

    pairs: tuple[Pair, ...]


def rounds_for(groups: Iterable[Group]) -> tuple[Round, ...]:
    """Return the rounds that measure each link of the rings of these groups, in ring direction."""
    by_axis = {axis: [group for group in groups if group.axis == axis] for axis in AXES}
    rounds: list[Round] = []
    for alike in by_axis.values():
        rings = [_ring_rounds(group.ranks) for group in alike]
        for number in range(max(map(len, rings), default=0)):
            parts = [ring[number] for ring in rings if number < len(ring)]
            rounds.append(Round(tuple(pair for part in parts for pair in part)))
    return tuple(rounds)


def _ring_rounds(ranks: Sequence[int]) -> list[list[Pair]]:
    """Return the links of a ring in rounds: even places send, then odd ones, then what is left."""
    count = len(ranks)
    from_even = [(ranks[i], ranks[(i + 1) % count]) for i in range(0, count - 1, 2)]
    from_odd = [(ranks[i], ranks[(i + 1) % count]) for i in range(1, count, 2)]
    rounds = [from_even, from_odd]
    if count % 2:
        rounds.append([(ranks[-1], ranks[0])])
    return rounds
