"""The distribution of needs: the most frequent classes, in an order that counts alone decide."""

from __future__ import annotations

from services.placement.core.gpu_parts.demand import Demand
from tests.services.placement.core.gpu_parts.fleet import worker


def test_the_most_frequent_classes_cover_what_is_wanted() -> None:
    shapes = [worker(1)] * 6 + [worker(0.5)] * 3 + [worker(8)]
    demand = Demand.of(shapes, 90)
    assert demand.classes == (worker(1), worker(0.5))
    assert demand.weight.tolist() == [6, 3]
    assert Demand.of(shapes, 91).classes[-1] == worker(8)


def test_of_many_classes_the_most_frequent_ones_are_taken() -> None:
    shapes = [worker(1)] * 3 + [worker(0.5)] * 2 + [worker(8)]
    counts = {shape: shapes.count(shape) for shape in shapes}
    assert Demand.of_counts(counts, 100, most=2).classes == (worker(1), worker(0.5))


def test_equal_counts_are_in_the_order_of_the_needs() -> None:
    shapes = [worker(2), worker(1), worker(0.5), worker(0)]
    assert Demand.of(shapes, 100).classes == Demand.of(shapes[::-1], 100).classes


def test_no_workers_are_no_demand() -> None:
    assert Demand.of([]).classes == ()
