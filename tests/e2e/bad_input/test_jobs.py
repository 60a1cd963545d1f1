"""Jobs that can never run: each is rejected with its reason."""

from __future__ import annotations

import pytest

from shared.contracts.identity import derive_job_id
from tests.e2e.stand import POOL, Stand

pytestmark = pytest.mark.stack


def test_a_job_that_can_never_fit_is_rejected_with_the_numbers(stand: Stand) -> None:
    huge = stand.submit(gang={"workers": 5, "gpus_per_worker": 8})
    strange = stand.submit(gpu_types=["h900"])
    good = stand.submit()
    for ticket in (huge, strange):
        row = stand.ended(ticket["job_id"])
        assert (row["phase"], row["reason"]) == ("rejected", "infeasible")
        assert row["detail"] == stand.answer(ticket["command_id"])["detail"]
    assert "gang.workers: 5: " in stand.ended(huge["job_id"])["detail"]
    assert "could hold 4 workers of 8 GPUs each" in stand.ended(huge["job_id"])["detail"]
    assert "h900" in stand.ended(strange["job_id"])["detail"]
    assert stand.ended(good["job_id"])["phase"] == "succeeded"


def test_a_missing_dependency_is_named(stand: Stand) -> None:
    ticket = stand.submit(depends_on=["no-such-job"])
    row = stand.ended(ticket["job_id"])
    assert (row["phase"], row["reason"]) == ("rejected", "dependency_missing")
    assert "no-such-job" in row["detail"]


def test_a_job_of_another_tenant_cannot_be_a_dependency_or_be_cancelled(stand: Stand) -> None:
    job_id = stand.submit(caller="bob")["job_id"]
    row = stand.ended(stand.submit(depends_on=[job_id])["job_id"])
    assert (row["phase"], row["reason"]) == ("rejected", "dependency_missing")
    assert stand.call("POST", f"/v1/jobs/{job_id}/cancel", {}, caller="ada")[0] == 404


def test_a_job_that_depends_on_a_failed_one_is_rejected_before_and_after(stand: Stand) -> None:
    bad = stand.submit(simulated={"duration_s": 1.0, "exit_code": 3})["job_id"]
    early = stand.submit(depends_on=[bad])["job_id"]
    assert stand.until(early, "deferred")["reason"] == "dependency"
    assert stand.ended(bad)["phase"] == "failed"
    late = stand.submit(depends_on=[bad])["job_id"]
    for job_id in (early, late):
        row = stand.ended(job_id)
        assert (row["phase"], row["reason"]) == ("rejected", "dependency_failed")
        assert bad in row["detail"]


def test_a_cycle_of_dependencies_ends_with_a_reason(stand: Stand) -> None:
    own, a, b = (derive_job_id("ada", POOL, key) for key in ("own", "cycle-a", "cycle-b"))
    stand.submit(key="own", depends_on=[own])
    stand.submit(key="cycle-a", depends_on=[b])
    stand.submit(key="cycle-b", depends_on=[a])
    assert stand.ended(own)["reason"] == "dependency_cycle"
    assert stand.ended(a)["reason"] == "dependency_missing"
    assert stand.ended(b)["reason"] == "dependency_failed"
