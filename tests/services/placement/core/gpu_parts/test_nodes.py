"""The table of nodes: what fits is what the contract says, and nothing is taken twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.gpu_parts.nodes import NodeTable
from shared.contracts.gang_needs import GPU
from tests.services.placement.core.gpu_parts.fleet import node, worker

FLEET = [node(0, cpus=8), node(2, cpus=4), node(8, gpu_type="b")]
ROWS = np.arange(len(FLEET))


def test_a_worker_fits_by_gpus_cores_memory_and_type() -> None:
    table = NodeTable.of(FLEET)
    assert table.fits(worker(0, cpus=6), ROWS).tolist() == [True, False, True]
    assert table.fits(worker(0.5), ROWS).tolist() == [False, True, True]
    assert table.fits(worker(0.5, types=("a",)), ROWS).tolist() == [False, True, False]
    assert table.fits(worker(4), ROWS).tolist() == [False, False, True]
    assert not table.fits(worker(1, gib=513), ROWS).any()


def test_a_share_and_a_whole_gpu_do_not_meet() -> None:
    table = NodeTable.of(FLEET)
    table.take(1, (0,), worker(0.3))
    assert table.whole_gpus(1, 2) == (1,)
    assert table.fits(worker(2), ROWS).tolist() == [False, False, True]
    assert table.free[1, :2].tolist() == [700, GPU]
    table.give(1, (0,), worker(0.3))
    assert table.fits(worker(2), ROWS)[1]


@given(st.lists(st.sampled_from([0, 0.1, 0.5, 0.81, 1, 2, 8]), max_size=40))
def test_what_is_given_back_is_free_as_before(sizes: list[float]) -> None:
    table, before = NodeTable.of(FLEET), NodeTable.of(FLEET)
    taken = []
    for size in sizes:
        shape = worker(size)
        fits = np.flatnonzero(table.fits(shape, ROWS))
        if not len(fits):
            continue
        row = int(fits[0])
        able = np.flatnonzero(table.free[row] >= shape.milli)[: shape.gpus].tolist()
        table.take(row, able, shape)
        taken.append((row, able, shape))
        assert ((table.free >= 0) & (table.free <= GPU)).all()
        assert (table.cpu_free >= 0).all() and (table.mem_free >= 0).all()
    for row, able, shape in taken:
        table.give(row, able, shape)
    assert (table.free == before.free).all() and (table.workers == 0).all()
    assert (table.cpu_free == before.cpu_free).all() and (table.mem_free == before.mem_free).all()
