"""Tenants, pools, endpoints, quotas and usage."""

from __future__ import annotations

import json

import pytest

from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.admission import QuotaChanged
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobPreempted,
    JobRequeued,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted
from shared.contracts.pools import PoolConfigured
from shared.projections.ledger_events import NotFolded
from shared.projections.tenants import (
    EndpointRow,
    PoolRow,
    QuotaRow,
    TenantRow,
    UsageRow,
    fold_endpoint,
    fold_pool,
    fold_quota,
    fold_tenant,
    fold_usage,
)
from tests.shared.ledger_events import AT, ledger_event

REGISTERED = TenantRegistered(tenant="red", default_pool="main", weight=2)


def tenant_row(*messages: Event) -> TenantRow:
    row = TenantRow("red")
    for seq, message in enumerate(messages):
        fold_tenant(row, ledger_event("access", message, seq=seq, at=AT + seq))
    return row


def usage_row(*messages: Event) -> UsageRow:
    row = UsageRow("0/red", "red", 0)
    for message in messages:
        fold_usage(row, ledger_event("placement", message))
    return row


def test_a_retired_tenant_is_inactive_until_it_is_registered_again() -> None:
    assert tenant_row(REGISTERED) == TenantRow("red", "main", 2, True, AT)
    assert not tenant_row(REGISTERED, TenantRetired(tenant="red")).active
    again = TenantRegistered(tenant="red", default_pool="other")
    row = tenant_row(REGISTERED, TenantRetired(tenant="red"), again)
    assert (row.active, row.default_pool, row.registered_at) == (True, "other", AT)


def test_a_pool_keeps_its_settings_as_json() -> None:
    row = PoolRow("p")
    configured = PoolConfigured(pool="p", partition=2, time_scale=60)
    fold_pool(row, ledger_event("access", configured))
    assert (row.partition, row.time_scale) == (2, 60)
    assert PoolConfigured.model_validate(json.loads(row.settings)) == configured


def test_an_endpoint_keeps_its_settings_as_json_until_it_is_deleted() -> None:
    row = EndpointRow("meta/Llama-3")
    configured = EndpointConfigured(endpoint="meta/Llama-3", partition=1, aliases=("chat",))
    fold_endpoint(row, ledger_event("access", configured))
    assert (row.partition, row.deleted_at) == (1, 0)
    assert EndpointConfigured.model_validate_json(row.settings) == configured
    gone = EndpointDeleted(endpoint="meta/Llama-3", partition=1)
    fold_endpoint(row, ledger_event("access", gone))
    assert row.deleted_at == AT
    fold_endpoint(row, ledger_event("access", configured))
    assert row.deleted_at == 0


def test_a_quota_without_a_limit_is_null() -> None:
    row = QuotaRow("0/red", "red", 0)
    limited = QuotaChanged(tenant="red", guaranteed_gpus=8, borrow_gpus=4, spot_gpus=2)
    fold_quota(row, ledger_event("admission", limited))
    assert (row.guaranteed_gpus, row.borrow_gpus, row.spot_gpus) == (8, 4, 2)
    fold_quota(row, ledger_event("admission", QuotaChanged(tenant="red", guaranteed_gpus=1)))
    assert (row.guaranteed_gpus, row.borrow_gpus, row.spot_gpus) == (1, None, None)


def test_usage_counts_ends_and_preemptions() -> None:
    row = usage_row(
        JobSucceeded(job_id="a", tenant="red", attempt=1, gpu_s=1),
        JobFailed(job_id="b", tenant="red", attempt=1, reason="worker_failed"),
        JobCancelled(job_id="c", tenant="red"),
        JobPreempted(job_id="d", tenant="red", attempt=1, reason="higher_class"),
    )
    assert (row.succeeded, row.failed, row.cancelled, row.preempted) == (1, 1, 1, 1)


def test_the_gpu_time_of_every_attempt_is_charged_to_the_tenant() -> None:
    row = usage_row(
        JobRequeued(job_id="a", tenant="red", attempt=2, reason="higher_class", gpu_s=2.5),
        JobAttemptFailed(job_id="a", tenant="red", attempt=2, reason="worker_failed", gpu_s=0.25),
        JobSucceeded(job_id="a", tenant="red", attempt=3, gpu_s=0.0801),
    )
    assert row.gpu_ms == 2830
    assert (row.succeeded, row.failed) == (1, 0)


def test_an_event_without_a_fold_is_an_error() -> None:
    with pytest.raises(NotFolded):
        usage_row(JobStarted(job_id="a", tenant="red", attempt=1))
