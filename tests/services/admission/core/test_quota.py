from __future__ import annotations

from typing import Any

from services.admission.core.quota import spot_share
from shared.contracts.admission import JobAdmitted, QuotaChanged
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.job_commands import SetQuota
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateQuota
from tests.harness.decider import an_input, given, run_facts
from tests.services.admission.core.cases import (
    ADMISSION,
    NOW,
    POOL,
    command,
    drain,
    placed,
    pool,
    quota,
    set_quota,
    submit,
    succeeded,
    summarize,
    summarize_jobs,
    when,
)


def test_a_deferred_job_is_admitted_once_its_quota_is_free() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"), submit("j3"))
    assert summarize(when(state, placed(succeeded("j1")))) == [
        "jobs.released main",
        "job.admitted j2",
    ]


def test_a_deferred_job_keeps_the_trace_and_the_time_of_its_submission() -> None:
    state = pool(quota(1))
    item = submit("j2")
    when(state, submit("j1"), item)
    *_, fact = run_facts(ADMISSION, state, [placed(succeeded("j1"))], NOW + 500)
    assert isinstance(fact.event, JobAdmitted)
    assert fact.event.submitted_at == NOW
    assert (fact.cause, fact.traceparent) == (item.id, item.traceparent)


def test_no_job_overtakes_the_first_in_its_tenants_queue() -> None:
    state = pool(quota(4))
    when(state, submit("j1", gpus=3), submit("j2", gpus=2))
    assert summarize_jobs(when(state, submit("j3", gpus=1))) == ["job.deferred j3 quota"]
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == [
        "job.admitted j2",
        "job.admitted j3",
    ]


def test_a_job_larger_than_the_whole_bound_blocks_no_other() -> None:
    state = pool(quota(4))
    events = when(state, submit("j1", gpus=5), submit("j2", gpus=4))
    assert summarize_jobs(events) == ["job.deferred j1 quota", "job.admitted j2"]


def test_a_larger_quota_admits_waiting_jobs() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"), submit("j3", gpus=4))
    assert summarize(when(state, set_quota(6)))[1:] == [
        "quota.changed acme",
        "job.admitted j2",
        "job.admitted j3",
    ]


def test_a_smaller_quota_leaves_admitted_jobs_admitted() -> None:
    state = pool(quota(2))
    when(state, submit("j1"), submit("j2"))
    assert len(when(state, set_quota(1))) == 2
    assert summarize_jobs(when(state, submit("j3"))) == ["job.deferred j3 quota"]
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == []
    assert summarize_jobs(when(state, placed(succeeded("j2")))) == ["job.admitted j3"]


def test_a_job_above_a_lowered_bound_no_longer_blocks_the_queue() -> None:
    state = pool(quota(4))
    when(state, submit("j1", gpus=4), submit("j2", gpus=4), submit("j3", gpus=1))
    when(state, set_quota(2))
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == ["job.admitted j3"]


def test_an_unchanged_quota_is_accepted_as_a_duplicate() -> None:
    (answer,) = when(pool(quota(2)), set_quota(2))
    assert isinstance(answer, CommandAccepted)
    assert answer.duplicate


def test_a_lane_without_a_pool_has_no_quotas() -> None:
    (answer,) = when(given(ADMISSION), set_quota(2))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "unknown_pool"


def test_the_bound_of_the_spot_jobs_is_that_of_the_pool_where_it_has_one() -> None:
    bounded = POOL.model_copy(update={"spot_gpus": 6.0})
    assert spot_share(given(ADMISSION, bounded), "acme").bound == 6000
    assert spot_share(given(ADMISSION, POOL), "acme").bound is None
    assert spot_share(given(ADMISSION), "acme").bound is None


def test_a_larger_spot_quota_of_the_pool_admits_waiting_jobs() -> None:
    state = pool(POOL.model_copy(update={"spot_gpus": 0.0}))
    when(state, submit("j1", spot=True))
    more = an_input(POOL.model_copy(update={"spot_gpus": 8.0}), "access")
    assert summarize(when(state, more)) == ["pool.configured main", "job.admitted j1"]


def test_a_freed_spot_gpu_goes_to_the_oldest_job() -> None:
    state = pool(POOL.model_copy(update={"spot_gpus": 1.0}))
    when(state, submit("j1", spot=True))
    when(state, submit("j2", "beta", spot=True), now=NOW + 1)
    when(state, submit("j3", spot=True), now=NOW + 2)
    events = when(state, placed(succeeded("j1")), now=NOW + 3)
    assert summarize_jobs(events) == ["job.admitted j2"]


def test_many_jobs_admitted_at_once_fill_many_small_records() -> None:
    state = pool(quota(0))
    for start in range(0, 1000, 100):
        when(state, *(submit(f"j{start + n}") for n in range(100)))
    first = summarize_jobs(when(state, set_quota(2000)))
    assert 0 < len(first) < 200
    assert len(first) + len(drain(state)) == 1000


def update(**bounds: Any) -> Any:
    return command(UpdateQuota.model_validate({"tenant": "acme", **bounds}))


def test_a_change_of_the_guarantee_keeps_the_bounds() -> None:
    state = pool()
    when(state, set_quota(8, borrow=4, spot=2))
    _, changed = when(state, update(guaranteed_gpus=0))
    assert changed == QuotaChanged(tenant="acme", guaranteed_gpus=0, borrow_gpus=4, spot_gpus=2)
    _, lifted = when(state, update(borrow_gpus=None))
    assert lifted == QuotaChanged(tenant="acme", guaranteed_gpus=0, spot_gpus=2)
    (same,) = when(state, update(spot_gpus=2))
    assert getattr(same, "duplicate", False)


def test_a_change_that_is_based_on_another_version_of_the_quota_is_refused() -> None:
    state, quota_ = pool(), QuotaChanged(tenant="acme", guaranteed_gpus=8, borrow_gpus=4)
    when(state, update(guaranteed_gpus=8, borrow_gpus=4, if_version="absent"))
    for stale in ("absent", "0" * 16):
        (refused,) = when(state, update(borrow_gpus=2, if_version=stale))
        assert isinstance(refused, CommandRefused) and refused.reason == "version_conflict"
        assert version_of(quota_) in refused.detail
    whole = SetQuota(tenant="acme", guaranteed_gpus=1, if_version="absent")
    (refused,) = when(state, command(whole))
    assert isinstance(refused, CommandRefused) and refused.reason == "version_conflict"
    _, changed = when(state, update(borrow_gpus=2, if_version=version_of(quota_)))
    assert changed == QuotaChanged(tenant="acme", guaranteed_gpus=8, borrow_gpus=2)


def test_a_tenant_without_a_quota_gets_one_with_a_guarantee_alone() -> None:
    state = pool()
    (refused,) = when(state, update(borrow_gpus=4))
    assert isinstance(refused, CommandRefused) and refused.reason == "quota_incomplete"
    _, made = when(state, update(guaranteed_gpus=2))
    assert made == QuotaChanged(tenant="acme", guaranteed_gpus=2)
