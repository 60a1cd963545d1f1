from __future__ import annotations

from typing import Any

from services.admission.core.demand import demand_of
from services.admission.core.state import PendingJob
from services.admission.core.verdict import Admit, Defer, Reject, judge
from shared.contracts.bookkeeping import CapacityNoted
from shared.contracts.job_spec import JobSpec
from tests.harness.decider import given
from tests.services.admission.core.cases import (
    ADMISSION,
    NOW,
    POOL,
    pool,
    quota,
    shape,
    submit,
    when,
)


def job(**spec: Any) -> PendingJob:
    gang = {"workers": spec.pop("workers", 1), "gpus_per_worker": spec.pop("gpus", 1)}
    validated = JobSpec.model_validate({"name": "train", "gang": gang, **spec})
    return PendingJob("j1", "acme", validated, demand_of(validated), "", NOW)


def test_a_job_that_nothing_holds_back_is_admitted() -> None:
    assert judge(pool(), job(), NOW) == Admit(borrowed=False)


def test_a_job_above_the_guaranteed_share_is_admitted_as_borrowed() -> None:
    assert judge(pool(quota(1, borrow=2)), job(gpus=2), NOW) == Admit(borrowed=True)


def test_dependencies_come_before_nodes_and_nodes_before_quota() -> None:
    state = pool(quota(0))
    when(state, submit("first"))
    impossible = {"gpus": 64, "depends_on": ("first",)}
    assert judge(state, job(**impossible), NOW) == Defer(
        "dependency", {"missing": 1, "first": "first"}
    )
    verdict = judge(state, job(gpus=64), NOW)
    assert isinstance(verdict, Reject)
    assert verdict.reason == "infeasible"


def test_a_job_with_an_image_needs_a_node_that_runs_images() -> None:
    verdict = judge(pool(), job(image="torch:2"), NOW)
    assert isinstance(verdict, Reject)
    assert verdict.detail == "image: 'torch:2': none of the pool's nodes, 2, runs images"
    node = shape("n3", labels={"berth.images": "yes"})
    state = pool(CapacityNoted(joined=(node,)))
    assert judge(state, job(image="torch:2"), NOW + 1) == Admit(borrowed=False)


def test_a_pool_without_nodes_defers() -> None:
    assert judge(given(ADMISSION, POOL), job(), NOW) == Defer("no_nodes", {"nodes": 0})


def test_a_job_that_does_not_fit_is_deferred_until_nodes_have_settled() -> None:
    numbers: dict[str, float | str] = {"nodes": 2, "workers": 3, "fit": 2}
    large = job(gpus=8, workers=3)
    assert judge(pool(), large, NOW - 1) == Defer("no_nodes", numbers)
    assert isinstance(judge(pool(), large, NOW), Reject)


def test_a_job_behind_others_of_its_tenant_is_deferred_with_their_number() -> None:
    state = pool(quota(2))
    when(state, submit("large", gpus=2), submit("next", gpus=1))
    verdict = judge(state, job(gpus=0), NOW)
    assert isinstance(verdict, Defer)
    assert (verdict.reason, verdict.detail["ahead"]) == ("quota", 1)
