"""The first bound that a job exceeds."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.bounds import (
    UNBOUNDED,
    TenantBounds,
    UserBounds,
    find_excess,
    largest_gpus,
    narrowest,
)
from shared.contracts.job_spec import JobSpec

BIGGEST: dict[str, Any] = {
    "name": "j",
    "priority_class": "system",
    "guaranteed_s": 1e9,
    "grace_s": 86400,
    "walltime_s": 1e9,
    "gang": {"workers": 4096, "gpus_per_worker": 64},
}


def excess_of(bounds: TenantBounds, by_operator: bool = False, **spec: Any) -> str | None:
    job = JobSpec.model_validate({"name": "j", **spec})
    excess = find_excess(bounds, job, "main", by_operator=by_operator)
    return excess.setting if excess else None


def test_without_bounds_the_largest_job_is_allowed() -> None:
    assert excess_of(UNBOUNDED, **BIGGEST) is None


@pytest.mark.parametrize(
    ("spec", "setting"),
    [
        ({"priority_class": "system"}, "highest_class"),
        ({"guaranteed_s": 604801}, "max_guaranteed_s"),
        ({"grace_s": 3601}, "max_grace_s"),
    ],
)
def test_the_defaults_bind_tenants_but_no_operators(spec: Any, setting: str) -> None:
    assert excess_of(TenantBounds(), **spec) == setting
    assert excess_of(TenantBounds(), by_operator=True, **spec) is None


def test_a_job_that_is_not_preemptible_is_a_guarantee_of_its_walltime() -> None:
    bounds, fixed = TenantBounds(max_guaranteed_s=60), {"preemptible": False}
    assert excess_of(bounds) is None, "a preemptible job needs no walltime"
    assert excess_of(bounds, **fixed) == "max_guaranteed_s"
    assert excess_of(bounds, **fixed, walltime_s=61) == "max_guaranteed_s"
    assert excess_of(bounds, **fixed, walltime_s=60) is None
    assert excess_of(bounds, by_operator=True, **fixed) is None
    assert excess_of(UNBOUNDED, **fixed) is None


def test_the_bounds_of_pools_and_gpus_bind_operators_too() -> None:
    assert excess_of(TenantBounds(pools=("other",)), by_operator=True) == "pools"
    assert excess_of(TenantBounds(max_job_gpus=0.5), by_operator=True) == "max_job_gpus"


def test_an_elastic_job_counts_with_all_the_workers_that_it_may_get() -> None:
    spec = {"name": "j", "gang": {"workers": 2}, "elastic": {"min_workers": 1, "max_workers": 9}}
    assert largest_gpus(JobSpec.model_validate(spec)) == 9


def test_of_several_bounds_the_narrowest_hold() -> None:
    tenant = TenantBounds(max_job_gpus=8, max_open_jobs=7, users="authenticated")
    user, key = UserBounds(max_job_gpus=4, max_walltime_s=60), UserBounds(highest_class="low")
    assert narrowest(tenant, user, key) == TenantBounds(
        max_job_gpus=4,
        max_open_jobs=7,
        max_walltime_s=60,
        highest_class="low",
        users="authenticated",
    )
