"""Simulated gangs with slow GPUs and links, for tests of the diagnosis."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from services.failslow.core.diagnosis.layout import Axis, Group, Layout
from services.failslow.core.diagnosis.validation import Pair, Round

JITTER = 0.02
GPUS_PER_NODE = 4
LINK_S: dict[Axis, float] = {"tp": 0.002, "dp": 0.02, "pp": 0.005}


@dataclass
class SlowGang:
    """`gpus` and `links` are the slow ones, with how many times slower they are."""

    layout: Layout
    random: Random
    gpus: dict[int, float]
    links: dict[frozenset[int], float]

    def nodes(self) -> dict[int, str]:
        return {rank: f"n{rank // GPUS_PER_NODE}" for rank in range(self.layout.size)}

    def compute_s(self) -> dict[int, float]:
        return {
            rank: 0.066 * self.gpus.get(rank, 1.0) * self._jitter()
            for rank in range(self.layout.size)
        }

    def link_s(self, axis: Axis, pair: Pair) -> float:
        return LINK_S[axis] * self.links.get(frozenset(pair), 1.0) * self._jitter()

    def group_s(self, group: Group) -> float:
        """Return the time of a collective: that of the slowest link of the ring."""
        ring = zip(group.ranks, (*group.ranks[1:], group.ranks[0]), strict=True)
        return max(self.link_s(group.axis, pair) for pair in ring)

    def measure(
        self, rounds: tuple[Round, ...], groups: tuple[Group, ...]
    ) -> dict[Axis, dict[Pair, float]]:
        times: dict[Axis, dict[Pair, float]] = {"tp": {}, "dp": {}, "pp": {}}
        axis_of = {
            pair: group.axis
            for group in groups
            for pair in zip(group.ranks, (*group.ranks[1:], group.ranks[0]), strict=True)
        }
        for one in rounds:
            for pair in one.pairs:
                times[axis_of[pair]][pair] = self.link_s(axis_of[pair], pair)
        return times

    def _jitter(self) -> float:
        return self.random.lognormvariate(0, JITTER)


def random_layout(random: Random) -> Layout:
    return Layout(
        random.choice((1, 2, 4, 8)), random.choice((2, 3, 4, 8)), random.choice((1, 2, 4))
    )
