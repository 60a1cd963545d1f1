from __future__ import annotations

from shared.schedulers.view import TypedNode, footprint_of, gpus_of
from tests.shared.schedulers.views import job, on, view


def test_types_are_in_the_order_of_the_nodes() -> None:
    nodes = (TypedNode("n1", "v", 4), TypedNode("n2", "p", 2), TypedNode("n3", "v", 4))
    now = view([job("a", placement=on("n2"))], nodes)
    assert list(now.gpus_of_type.items()) == [("v", 8), ("p", 2)]
    assert (now.type_of(now.job_by_id["a"].placement), now.type_of(())) == ("p", None)


def test_a_job_may_use_the_types_that_it_names_or_all() -> None:
    own = job("a", gpu_types=("v",))
    assert own.may_use("v") and not own.may_use("p")
    assert job("b").may_use("p")
    assert gpus_of((("n1", 2), ("n2", 1))) == 3
    assert (own.is_running, job("c", placement=on("n1")).is_running) == (False, True)


def test_a_footprint_counts_racks_where_all_nodes_name_theirs() -> None:
    nodes = {
        name: TypedNode(name, "v", gpus, rack)
        for name, gpus, rack in (("n1", 4, "r1"), ("n2", 2, "r1"), ("n3", 4, "r2"), ("n4", 4, ""))
    }
    near = footprint_of((("n1", 1), ("n2", 2)), nodes)
    assert (near.gpu_type, near.per_node, near.node_gpus, near.racks) == ("v", (1, 2), 4, 1)
    assert footprint_of((("n1", 1), ("n3", 2)), nodes).racks == 2
    assert footprint_of((("n1", 1), ("n4", 2)), nodes).racks == 0
