from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.instance import FreeNode, GangRequest, Instance, NodeClass
from services.placement.core.solver.places import NodeBundle
from services.placement.core.solver.variables import Variables, free_of, need_of, total


def node_class(name: str, gpus: int = 4) -> NodeClass:
    return NodeClass(gpus, gpus, (), 8000, 4096, 0, (FreeNode(name, (GPU,) * gpus),))


def request(workers: int, milli: int = GPU) -> GangRequest:
    return GangRequest("j", 1, 1, milli, 500, 64, 1, workers, (0,), (GPU,), 0, 1)


def variables(*requests: GangRequest) -> Variables:
    """Return the variables of two classes; the second one has a single node and a bundle."""
    classes = node_class("a"), node_class("b", 8)
    places = [NodeBundle(at, classes[at].nodes, single) for at, single in ((0, True), (1, True))]
    places.append(NodeBundle(1, classes[1].nodes, False))
    return Variables(Instance(classes, requests), places)


def test_places_are_grouped_by_class_and_begin_without_load() -> None:
    model = variables()
    assert model.by_class == {0: [0], 1: [1, 2]}
    assert [model.cls(number).gpus for number in range(3)] == [4, 8, 8]
    model.now[0].gpus.append((model.bool(), 1))
    assert model.now[1].gpus == [] and model.later[0].gpus == [], "no load is shared"


def test_only_workers_with_a_share_may_open_gpus() -> None:
    assert variables(request(3), request(2, milli=500), request(4, milli=250)).share_workers == 6


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9)), max_size=6))
def test_a_total_is_the_weighted_sum_of_the_values(terms: list[tuple[int, int]]) -> None:
    model = variables()
    pairs = [(model.upto(9), weight) for _, weight in terms]
    for (var, _), (value, _) in zip(pairs, terms, strict=True):
        model.cp.add(var == value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    assert solver.value(total(pairs)) == sum(value * weight for value, weight in terms)


def test_a_variable_up_to_one_is_a_boolean() -> None:
    model = variables()
    (one, many) = model.upto(1), model.upto(5)
    domains = [list(model.cp.proto.variables[var.index].domain) for var in (one, many)]
    assert domains == [[0, 1], [0, 5]]


def test_needs_and_free_capacity_are_those_of_one_worker_and_an_untouched_node() -> None:
    assert need_of(request(3, milli=250)) == (1, 250, 500, 64)
    left = free_of(node_class("a"))
    assert (left.gpus, left.whole, left.opened, left.cpu_milli, left.mem_mib) == (
        4,
        4,
        0,
        8000,
        4096,
    )
