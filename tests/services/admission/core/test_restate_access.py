from __future__ import annotations

from shared.contracts.access import PoolConfigured, TenantRegistered, TenantRetired
from shared.contracts.bookkeeping import TenantNoted
from shared.testing.decider import an_input, given
from tests.services.admission.core.cases import (
    ADMISSION,
    POOL,
    placed,
    pool,
    quota,
    submit,
    succeeded,
    summarize_jobs,
    when,
)


def test_events_of_access_are_restated_when_they_change_something() -> None:
    state = given(ADMISSION)
    events = [
        an_input(POOL, "access"),
        an_input(PoolConfigured(partition=1, pool="other"), "access"),
        an_input(TenantRegistered(tenant="acme", default_pool="main", weight=2), "access"),
    ]
    assert when(state, *events) == [POOL, TenantNoted(tenant="acme", weight=2)]
    assert when(state, *events) == []


def test_a_retired_tenants_jobs_go_on() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"))
    gone = an_input(TenantRetired(tenant="acme"), "access")
    assert when(state, gone) == [TenantNoted(tenant="acme", active=False)]
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == ["job.admitted j2"]


def test_repeated_history_changes_nothing() -> None:
    state = pool(TenantNoted(tenant="acme", active=False))
    again = [
        an_input(TenantRegistered(tenant="acme", default_pool="main"), "access"),
        an_input(TenantRetired(tenant="acme"), "access"),
    ]
    assert when(state, *again) == []
