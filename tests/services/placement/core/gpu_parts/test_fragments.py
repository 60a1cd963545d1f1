"""The fragment of a node: the paper's definition class by class, and equal to a plain count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.placement.core.gpu_parts.demand import Demand
from services.placement.core.gpu_parts.fragments import NOWHERE, fragments, fragments_after
from services.placement.core.gpu_parts.nodes import NodeTable
from shared.contracts.gang_needs import GPU, Shape
from tests.services.placement.core.gpu_parts.fleet import node, worker

CLASSES = [
    *(worker(0.3), worker(0.5, cpus=2), worker(0.81, gib=8), worker(1, cpus=4), worker(2)),
    *(worker(8, cpus=32), worker(0, cpus=8), worker(0.5, types=("b",)), worker(1, types=("a",))),
]


def one_by_one(table: NodeTable, row: int, demand: Demand) -> int:
    """Return the fragment by the definition, class by class, without arrays."""
    free = table.free[row].tolist()
    amount = 0
    for shape, count in zip(demand.classes, demand.weight.tolist(), strict=True):
        holds = bool(table.fits(shape, np.array([row]))[0]) and shape.gpus > 0
        amount += round(count) * sum(left for left in free if not holds or left < shape.milli)
    return amount


@pytest.mark.parametrize(
    ("shape", "milli"),
    [
        (worker(0.2), 0),  # Any of the free parts is of use.
        (worker(0.5), 300),  # The part of 300 is too small.
        (worker(1), 300),
        (worker(2), 1300),  # One whole GPU is too few: nothing is of use.
        (worker(0.2, cpus=65), 1300),  # Too few cores.
        (worker(0.2, gib=513), 1300),
        (worker(0.2, types=("b",)), 1300),
        (worker(0), 1300),  # It uses no GPU.
    ],
)
def test_a_fragment_is_what_the_class_cannot_use(shape: Shape, milli: int) -> None:
    table = NodeTable.of([node(2)])
    table.take(0, (0,), worker(0.7, cpus=0, gib=0))
    assert fragments(table, np.arange(1), Demand.of([shape] * 3)).tolist() == [3 * milli]


@settings(deadline=None)
@given(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=30), st.integers(0, 2**32))
def test_the_arrays_count_as_the_definition_does(shapes: list[Shape], seed: int) -> None:
    demand, draws = Demand.of(shapes, 100), np.random.default_rng(seed)
    table = NodeTable.of([node(2, cpus=8), node(8), node(0), node(4, gpu_type="b"), node(1, gib=4)])
    for row, gpu in [(0, 0), (1, 3), (1, 3), (1, 7), (3, 0)]:
        milli = int(draws.integers(1, 500))
        table.take(row, (gpu,), worker(milli / GPU, cpus=int(draws.integers(0, 4)), gib=0))
    rows = np.arange(len(table))
    before = fragments(table, rows, demand)
    assert before.tolist() == [one_by_one(table, row, demand) for row in rows.tolist()]
    for shape in set(shapes):
        after, gpus = fragments_after(table, rows, shape, demand)
        for row in range(len(table)):
            check_after(table, row, shape, demand, int(after[row]), int(gpus[row]))


def check_after(
    table: NodeTable, row: int, shape: Shape, demand: Demand, after: int, gpu: int
) -> None:
    """Take the worker on each GPU in turn: the least fragment is the one that was computed."""
    if not table.fits(shape, np.array([row]))[0]:
        assert (after, gpu) == (NOWHERE, -1)
        return
    if shape.gpus and shape.is_share:
        places: list[tuple[int, ...]] = [
            (at,) for at in np.flatnonzero(table.free[row] >= shape.milli).tolist()
        ]
    else:
        places = [table.whole_gpus(row, shape.gpus)]
    amounts = []
    for place in places:
        table.take(row, place, shape)
        amounts.append(one_by_one(table, row, demand))
        table.give(row, place, shape)
    assert after == min(amounts)
    if gpu >= 0:
        assert (gpu,) == places[amounts.index(min(amounts))]
