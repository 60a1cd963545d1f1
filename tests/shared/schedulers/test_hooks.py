from __future__ import annotations

from shared.schedulers.hooks import Allotment, admit, free_by_type, running_allotments
from tests.shared.schedulers.views import job, nodes_of, on, view

NOW = view(
    [job("a", 2, placement=on("n-v", 2)), job("b", 3), job("c", 1), job("d", 1)], nodes_of(v=4, p=1)
)


def test_what_runs_is_allotted_and_the_rest_is_free() -> None:
    running = running_allotments(NOW)
    assert running == {"a": Allotment("v", 2)}
    assert free_by_type(NOW, running) == {"v": 2, "p": 1}


def test_requests_are_admitted_in_order_to_the_roomiest_type() -> None:
    running = running_allotments(NOW)
    ranked = ["a", "b", "c", "d"]
    admitted = admit(NOW, ranked, running)
    assert admitted == {**running, "c": Allotment("v", 1), "d": Allotment("v", 1)}
    assert admit(NOW, ranked, running, passes_over=False) == running
    assert list(admit(NOW, ranked, {})) == ["a", "c", "d"], "three GPUs fit no type any more"
