"""A placer with kept scores places as one without, and draws are those of their seed."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from services.placement.core.gpu_parts.demand import Demand
from services.placement.core.gpu_parts.nodes import NodeTable
from services.placement.core.gpu_parts.placer import Place, Placer, RandomPlacer, ScoredPlacer, draw
from services.placement.core.gpu_parts.scores import FragmentationDescent, LargestNode
from shared.contracts.gang_needs import Shape
from tests.services.placement.core.gpu_parts.fleet import node, worker

FLEET = [node(8, cpus=32), node(2, cpus=8), node(4, gpu_type="b"), node(0), node(1)] * 3
SHAPES = [
    *(worker(0.3), worker(0.5, cpus=2), worker(0.81), worker(1, cpus=4), worker(2), worker(8)),
    *(worker(0, cpus=4), worker(0.5, types=("b",))),
]
DEMAND = Demand.of(SHAPES, 100)
SCORE = FragmentationDescent(DEMAND, LargestNode.of(NodeTable.of(FLEET)))


def places(placer: Placer, shapes: list[Shape]) -> list[Place | None]:
    """Place all workers one after another; every third place is given back at once."""
    table, taken = NodeTable.of(FLEET), []
    for number, shape in enumerate(shapes):
        place = placer.place(table, shape)
        taken.append(place)
        if place is None:
            assert not table.fits(shape, np.arange(len(table))).any()
            continue
        table.take(place.row, place.gpus, shape)
        assert (table.free >= 0).all() and len(set(place.gpus)) == shape.gpus
        if number % 3 == 0:
            table.give(place.row, place.gpus, shape)
    return taken


class Forgetful:
    """Scores every row each time."""

    def place(self, table: NodeTable, shape: Shape) -> Place | None:
        return ScoredPlacer(SCORE).place(table, shape)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(SHAPES), max_size=60))
def test_kept_scores_change_no_place(shapes: list[Shape]) -> None:
    assert places(ScoredPlacer(SCORE), shapes) == places(Forgetful(), shapes)


def test_a_random_placer_repeats_its_seed_and_no_other() -> None:
    shapes = SHAPES * 4
    assert places(RandomPlacer(1), shapes) == places(RandomPlacer(1), shapes)
    assert places(RandomPlacer(1), shapes) != places(RandomPlacer(2), shapes)


def test_an_empty_table_has_no_place() -> None:
    assert ScoredPlacer(SCORE).place(NodeTable.of([]), worker(1)) is None


def test_draws_are_even() -> None:
    counts = Counter(draw(7, number, 10) for number in range(10_000))
    assert set(counts) == set(range(10)) and max(counts.values()) < 1_150
