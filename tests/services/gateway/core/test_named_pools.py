"""The first pool is where a job waits; every other one has to exist and to take it."""

from __future__ import annotations

import pytest

from services.gateway.core.field_errors import InvalidBody
from services.gateway.core.named_pools import check_pools, other_pools, with_pools
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.pools import PoolConfigured

POOLS = {
    "a": PoolConfigured(partition=0, pool="a"),
    "b": PoolConfigured(partition=1, pool="b", backends=("agent",)),
    "closed": PoolConfigured(partition=2, pool="closed", tenants=("beta",)),
}
BEFORE = {"from_job_id": "x", "from_pool": "a", "first_job_id": "x", "transfers": 1}


def spec_of(*pools: str, **more: object) -> JobSpec:
    return JobSpec.model_validate({"name": "j", "command": ["true"], "pools": pools, **more})


@pytest.mark.parametrize(
    ("pools", "pool", "expected"),
    [
        (("a", "b"), None, (("a", "b"), "a")),
        (("a", "b"), "b", (("b", "a"), "b")),
        (("b",), None, (None, "b")),
        ((), None, (None, None)),
    ],
)
def test_the_named_pool_comes_first(
    pools: tuple[str, ...], pool: str | None, expected: tuple[object, object]
) -> None:
    spec, first = with_pools(spec_of(*pools), pool, 1)
    assert (spec.pools, first) == expected


@pytest.mark.parametrize(
    ("spec", "pool", "size"),
    [
        (spec_of("a", "a"), None, 1),
        (spec_of("a", "b"), "c", 1),
        (spec_of("a", "b"), None, 2),
        (spec_of("a", "b", transferred=BEFORE), None, 1),
    ],
    ids=["twice", "another", "array", "by Berth alone"],
)
def test_pools_that_make_no_sense_are_refused(spec: JobSpec, pool: str | None, size: int) -> None:
    with pytest.raises(InvalidBody):
        with_pools(spec, pool, size)


def submission(*pools: str, **more: object) -> SubmitJob:
    spec = spec_of(*pools, **more)
    return SubmitJob(job_id="j", tenant="acme", pool="a", idempotency_key="k", spec=spec)


@pytest.mark.parametrize(
    "command",
    [
        submission("a", "unknown"),
        submission("a", "closed"),
        submission("a", "b", simulated={}),
        submission("a", "b", command=()),
    ],
    ids=["unknown", "closed", "simulates nothing", "needs a command"],
)
def test_another_pool_that_would_reject_the_job_is_refused(command: SubmitJob) -> None:
    with pytest.raises(InvalidBody):
        check_pools(command, POOLS)


def test_pools_that_take_the_job_are_accepted() -> None:
    check_pools(submission("a", "b"), POOLS)


def test_the_other_pools_of_a_job_are_in_its_order_with_the_rule_that_forbids_one() -> None:
    spec = spec_of("a", "closed", "b", "gone").model_copy(update={"command": ()})
    rules = other_pools(spec, "ada", "a", POOLS)
    assert list(rules) == ["closed", "b", "gone"]
    assert rules["b"] is None
    assert "tenants" in str(rules["closed"]) and "no such pool" in str(rules["gone"])
    assert other_pools(spec_of("b"), "ada", "b", POOLS) == {}
