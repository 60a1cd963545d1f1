"""Each policy takes the node that it is named for, and ties go to the first row."""

from __future__ import annotations

from services.placement.core.gpu_parts.demand import Demand
from services.placement.core.gpu_parts.nodes import NodeTable
from services.placement.core.gpu_parts.placer import Place, ScoredPlacer
from services.placement.core.gpu_parts.scores import (
    BestFit,
    DotProduct,
    FragmentationDescent,
    LargestNode,
    Score,
    first_fit,
    gpu_clustering,
    gpu_packing,
)
from shared.contracts.gang_needs import NodeKind, Shape
from tests.services.placement.core.gpu_parts.fleet import node, worker

FLEET = [node(8, cpus=96), node(4, cpus=64), node(2, cpus=32)]
LARGEST = LargestNode.of(NodeTable.of(FLEET))


def place(
    score: Score, shape: Shape, *taken: tuple[Place, Shape], fleet: list[NodeKind] = FLEET
) -> Place | None:
    table = NodeTable.of(fleet)
    for (row, gpus), held in taken:
        table.take(row, gpus, held)
    return ScoredPlacer(score).place(table, shape)


def test_first_fit_takes_the_first_node_and_its_fullest_gpu() -> None:
    assert place(first_fit, worker(0.5)) == Place(0, (0,))
    assert place(first_fit, worker(0.5), (Place(0, (3,)), worker(0.4))) == Place(0, (3,))
    assert place(first_fit, worker(0.5, types=("b",))) is None


def test_best_fit_leaves_least() -> None:
    assert place(BestFit(LARGEST), worker(1)) == Place(2, (0,))
    assert place(BestFit(LARGEST), worker(4)) == Place(1, (0, 1, 2, 3))


def test_a_dot_product_weighs_what_the_worker_needs() -> None:
    many_cores = (Place(2, ()), worker(0, cpus=0))
    assert place(DotProduct(LARGEST), worker(1), many_cores) == Place(2, (0,))
    without_cores = worker(0.5, cpus=0)
    full = (Place(1, (0, 1, 2)), worker(3))
    assert place(DotProduct(LARGEST), without_cores, full) == Place(1, (3,))


def test_packing_prefers_gpus_in_use_then_nodes_in_use_then_small_nodes() -> None:
    half = (Place(0, (5,)), worker(0.5))
    assert place(gpu_packing, worker(0.5), half) == Place(0, (5,))
    assert place(gpu_packing, worker(0.6), half) == Place(0, (0,))
    assert place(gpu_packing, worker(0.5)) == Place(2, (0,))
    fuller = (Place(1, (2,)), worker(0.7))
    assert place(gpu_packing, worker(0.3), half, fuller) == Place(1, (2,))


def test_clustering_prefers_nodes_with_workers_of_as_many_gpus() -> None:
    share, pair = (Place(1, (0,)), worker(0.5)), (Place(0, (0, 1)), worker(2))
    assert place(gpu_clustering, worker(2), share, pair) == Place(0, (2, 3))
    assert place(gpu_clustering, worker(0.2), share, pair) == Place(1, (0,))
    assert place(gpu_clustering, worker(1), share, pair) == Place(2, (0,))
    mixed = (Place(1, (1,)), worker(1))
    assert place(gpu_clustering, worker(0.2), share, mixed) == Place(1, (0,))


def test_descent_takes_the_node_where_the_fragment_grows_least() -> None:
    """A share of 0.4 beside one of 0.6 leaves no fragment; on the emptier GPU 0.2 is left, of use
    to none."""
    demand = Demand.of([worker(0.4)] * 5 + [worker(0.6)] * 5)
    score = FragmentationDescent(demand, LARGEST)
    exact, loose = (Place(0, (0,)), worker(0.6)), (Place(1, (0,)), worker(0.4))
    assert place(score, worker(0.4), exact, loose) == Place(0, (0,))
    assert place(score, worker(0.6), exact, loose) == Place(1, (0,))


def test_descent_keeps_whole_gpus_where_large_workers_are_frequent() -> None:
    demand = Demand.of([worker(8)] * 5 + [worker(1)] * 5)
    fleet = [node(8), node(8)]
    score = FragmentationDescent(demand, LargestNode.of(NodeTable.of(fleet)))
    used = (Place(1, (0,)), worker(1))
    assert place(score, worker(1), used, fleet=fleet) == Place(1, (1,))


def test_growths_of_one_band_are_decided_by_what_is_left() -> None:
    """The first node's fragment grows by 20 thousandths less; the second is full afterwards."""
    demand = Demand.of([worker(0.98)])
    fleet = [node(2), node(1, cpus=1)]
    largest = LargestNode.of(NodeTable.of(fleet))
    taken = (Place(0, (0,)), worker(0.02)), (Place(1, (0,)), worker(0.01, cpus=0))
    banded = FragmentationDescent(demand, largest)
    assert place(banded, worker(0.98), *taken, fleet=fleet) == Place(1, (0,))
    exact = FragmentationDescent(demand, largest, band_milli=0)
    assert place(exact, worker(0.98), *taken, fleet=fleet) == Place(0, (0,))
