from __future__ import annotations

from shared.schedulers.exchange import exchanged, relative_speeds
from shared.schedulers.hooks import Allotment
from tests.shared.schedulers.views import job, nodes_of, on, rates, view

NODES = nodes_of(fast=2, slow=2)


def test_each_job_gets_the_type_that_it_gains_most_from() -> None:
    jobs = [
        job("a", estimates=rates({"fast": 10.0, "slow": 9.0})),
        job("b", estimates=rates({"fast": 10.0, "slow": 1.0})),
        job("c", estimates=rates({"fast": 10.0, "slow": 2.0})),
    ]
    own = {"a": Allotment("fast", 1), "b": Allotment("slow", 1), "c": Allotment("fast", 1)}
    types = {name: made.gpu_type for name, made in exchanged(view(jobs, NODES), own).items()}
    assert types == {"a": "slow", "b": "fast", "c": "fast"}
    assert list(types) == list(own)


def test_a_gang_changes_as_a_whole_and_gpus_suffice() -> None:
    jobs = [
        job("a", 2, estimates=rates({"fast": 4.0, "slow": 1.0}, gpus=2)),
        job("b", estimates=rates({"fast": 2.0, "slow": 1.0})),
        job("c", estimates=rates({"fast": 2.0, "slow": 1.9})),
    ]
    own = {"a": Allotment("slow", 2), "b": Allotment("fast", 1), "c": Allotment("fast", 1)}
    # The gang gains 0.75 of its speed, the others would lose 0.5 and 0.05 of theirs.
    assert exchanged(view(jobs, NODES), own) == {
        "a": Allotment("fast", 2),
        "b": Allotment("slow", 1),
        "c": Allotment("slow", 1),
    }


def test_a_job_that_is_as_fast_stays_where_it_runs() -> None:
    jobs = [job("a", placement=on("n-slow")), job("b")]
    own = {"a": Allotment("slow", 1), "b": Allotment("fast", 1)}
    assert exchanged(view(jobs, NODES), own)["a"] == Allotment("slow", 1)


def test_a_type_that_a_job_may_not_use_or_fails_on_has_no_speed() -> None:
    own = job("a", gpu_types=("fast", "slow"), estimates=rates({"fast": 2.0, "slow": 0.0, "x": 9}))
    assert relative_speeds(own, 1, {"fast": 1, "slow": 1, "x": 1}) == {"fast": 1.0}
