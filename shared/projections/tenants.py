"""`tenant`, `pool` and `endpoint` of an installation; `quota` and `tenant_usage` of each lane."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.jobs import used_gpu_ms
from shared.projections.ledger_events import LedgerEvent, NotFolded
from shared.projections.table import BigInt, RowTable


@dataclass(slots=True)
class TenantRow:
    """A tenant; `active` is false once it is retired."""

    tenant: str
    default_pool: str = ""
    weight: float = 1.0
    active: bool = True
    registered_at: BigInt = 0


@dataclass(slots=True)
class PoolRow:
    """A pool; `settings` is its last PoolConfigured as JSON.

    `deleted_at` is 0 while the pool exists: rows of its jobs still name it by its lane.
    """

    pool: str
    partition: int = 0
    time_scale: float = 1.0
    settings: str = "{}"
    deleted_at: BigInt = 0


@dataclass(slots=True)
class EndpointRow:
    """An LLM endpoint; `settings` is its last EndpointConfigured as JSON.

    `deleted_at` is 0 while the endpoint exists: rows of old requests still name it.
    """

    endpoint: str
    partition: int = 0
    settings: str = "{}"
    deleted_at: BigInt = 0


@dataclass(slots=True)
class UsageRow:
    """The usage of a tenant on one lane; whole milliseconds, so sums are exact."""

    usage_id: str
    tenant: str
    partition: int
    gpu_ms: BigInt = 0
    succeeded: BigInt = 0
    failed: BigInt = 0
    cancelled: BigInt = 0
    preempted: BigInt = 0


@dataclass(slots=True)
class QuotaRow:
    """The quota of a tenant on one lane, in GPUs."""

    quota_id: str
    tenant: str
    partition: int
    guaranteed_gpus: float = 0.0
    borrow_gpus: float | None = None
    spot_gpus: float | None = None


TENANT = RowTable("tenant", TenantRow, "tenant")
POOL = RowTable("pool", PoolRow, "pool")
ENDPOINT = RowTable("endpoint", EndpointRow, "endpoint")
USAGE = RowTable("tenant_usage", UsageRow, "usage_id")
QUOTA = RowTable("quota", QuotaRow, "quota_id")


def fold_tenant(row: TenantRow, event: LedgerEvent) -> None:
    match event.type:
        case "tenant.registered.v1":
            row.default_pool, row.weight = event.data["default_pool"], event.data.get("weight", 1.0)
            row.active, row.registered_at = True, row.registered_at or event.at
        case "tenant.retired.v1":
            row.active = False
        case _:
            raise NotFolded(event.type)


def fold_pool(row: PoolRow, event: LedgerEvent) -> None:
    row.partition = event.data["partition"]
    match event.type:
        case "pool.configured.v1":
            row.time_scale = event.data.get("time_scale", 1.0)
            row.settings, row.deleted_at = event.raw.decode(), 0
        case "pool.deleted.v1":
            row.deleted_at = event.at
        case _:
            raise NotFolded(event.type)


def fold_endpoint(row: EndpointRow, event: LedgerEvent) -> None:
    row.partition = event.data["partition"]
    match event.type:
        case "endpoint.configured.v2":
            row.settings, row.deleted_at = event.raw.decode(), 0
        case "endpoint.deleted.v1":
            row.deleted_at = event.at
        case _:
            raise NotFolded(event.type)


def fold_usage(row: UsageRow, event: LedgerEvent) -> None:
    match event.type:
        case "job.succeeded.v1":
            row.succeeded += 1
        case "job.failed.v1":
            row.failed += 1
        case "job.cancelled.v1":
            row.cancelled += event.data.get("transferred_to") is None
        case "job.preempted.v1":
            row.preempted += 1
        case "job.requeued.v1" | "job.attempt-failed.v1":
            pass
        case _:
            raise NotFolded(event.type)
    row.gpu_ms += used_gpu_ms(event.data)


def fold_quota(row: QuotaRow, event: LedgerEvent) -> None:
    row.guaranteed_gpus = event.data["guaranteed_gpus"]
    row.borrow_gpus = event.data.get("borrow_gpus")
    row.spot_gpus = event.data.get("spot_gpus")
