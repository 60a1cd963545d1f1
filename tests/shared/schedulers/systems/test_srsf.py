from __future__ import annotations

from shared.schedulers.compose import propose
from shared.schedulers.systems.srsf import Srsf
from tests.shared.schedulers.views import job, nodes_of, on, rates, view


def test_the_least_gpu_time_is_first_and_stops_what_runs() -> None:
    jobs = [
        job("long", 2, estimates=rates({"v": 1.0}, 2, 100.0), placement=on("n-v", 2)),
        job("wide", 4, 1.0, estimates=rates({"v": 1.0}, 4, 30.0)),
        job("short", 1, 2.0, estimates=rates({"v": 2.0}, 1, 200.0)),
        job("unknown", 1),
    ]
    now = view(jobs, nodes_of(v=4))
    assert Srsf().rank(now, {}) == ["short", "wide", "long", "unknown"]
    assert propose(Srsf(), now, {}).placements == {
        "long": on("n-v", 2),
        "short": on("n-v"),
        "unknown": on("n-v"),
    }
    assert set(propose(Srsf(), view(jobs, nodes_of(v=1)), {}).placements) == {"short"}
