from __future__ import annotations

from shared.schedulers.hooks import Allotment
from shared.schedulers.placing import best_fit, emptiest_first
from shared.schedulers.view import TypedNode
from tests.shared.schedulers.views import job, on, view

NODES = (TypedNode("n1", "v", 4), TypedNode("n2", "v", 2), TypedNode("n3", "v", 4))


def test_best_fit_fills_the_fullest_node_and_spreads_what_fits_on_none() -> None:
    now = view([job("a", 2), job("b", 6)], NODES)
    placements = best_fit(now, {"a": Allotment("v", 2), "b": Allotment("v", 6)})
    assert placements == {"b": (("n1", 4), ("n3", 2)), "a": on("n2", 2)}


def test_emptiest_first_takes_the_roomiest_nodes() -> None:
    now = view([job("a", 2), job("b", 3)], NODES)
    placements = emptiest_first(now, {"a": Allotment("v", 2), "b": Allotment("v", 3)})
    assert placements == {"a": on("n1", 2), "b": on("n3", 3)}


def test_a_job_keeps_what_it_holds_and_the_rest_is_placed_around_it() -> None:
    now = view([job("a", 2, placement=on("n3", 2)), job("b", 4)], NODES)
    placements = best_fit(now, {"b": Allotment("v", 4), "a": Allotment("v", 2)})
    assert placements == {"a": on("n3", 2), "b": on("n1", 4)}


def test_more_than_is_free_is_left_out() -> None:
    now = view([job("a", 11)], NODES)
    assert best_fit(now, {"a": Allotment("v", 11)}) == {}
