"""A workload is inflated until it has requested what it should, and the figures are of its end."""

from __future__ import annotations

from services.placement.core.gpu_parts.placer import ScoredPlacer
from services.placement.core.gpu_parts.scores import first_fit
from shared.contracts.gang_needs import GPU, NodeKind, Shape
from simulator.gpu_parts.inflation import END_PERCENT, arrivals, inflate
from simulator.gpu_parts.openb import shape_of

KINDS = [NodeKind("a", 4, 32_000, 64_000, ())] * 5
SHAPES = [shape_of(gpus, 1, 1, "") for gpus in (0.25, 0.5, 1, 2, 0)]
GPU_MILLI = 20 * GPU


def test_arrivals_are_the_trace_once_and_then_drawn_from_it() -> None:
    order = arrivals(SHAPES, GPU_MILLI, 3)
    requested = sum(shape.worker_milli for shape in order)
    limit = GPU_MILLI * END_PERCENT // 100
    assert limit - 2 * GPU < requested <= limit
    assert sorted(order[: len(SHAPES)]) == sorted(SHAPES)
    assert set(order) <= set(SHAPES)
    assert order == arrivals(SHAPES, GPU_MILLI, 3) != arrivals(SHAPES, GPU_MILLI, 4)


def test_a_trace_that_requests_more_is_cut() -> None:
    order = arrivals([shape_of(4, 1, 1, "")] * 20, GPU_MILLI, 0)
    assert len(order) == 6


def test_figures_count_what_no_worker_holds() -> None:
    halves: list[Shape] = [shape_of(0.5, 0, 0, "")] * 50
    result = inflate(KINDS, halves, ScoredPlacer(first_fit), (50, 100, 130))
    assert result.unallocated_percent == {50: 50.0, 100: 0.0, 130: 0.0}
    assert (result.lost, result.workers) == (10, 50)


def test_gpus_without_cores_stay_unallocated() -> None:
    result = inflate(KINDS, [shape_of(1, 16, 0, "")] * 20, ScoredPlacer(first_fit), (100,))
    assert result.unallocated_percent == {100: 50.0}
    assert result.lost == 10
