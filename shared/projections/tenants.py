"""Who and where (`tenant`, `pool`, `endpoint`), and `quota` and `tenant_usage` of each lane."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.jobs import used_ms
from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import RowTable


@dataclass(slots=True)
class Tenant:
    tenant: str
    default_pool: str = ""
    weight: float = 1.0
    active: bool = True
    registered_at: int = 0


@dataclass(slots=True)
class Pool:
    pool: str
    partition: int = 0
    time_scale: float = 1.0
    settings: str = "{}"


@dataclass(slots=True)
class Endpoint:
    endpoint: str
    partition: int = 0
    tokens_per_s: float = 0.0
    batch_tokens: int = 0


@dataclass(slots=True)
class Usage:
    """Sums in whole milliseconds: adding them is exact in any grouping."""

    usage_id: str
    tenant: str
    partition: int
    gpu_ms: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    preempted: int = 0


@dataclass(slots=True)
class Quota:
    quota_id: str
    tenant: str
    partition: int
    guaranteed_gpus: float = 0.0
    borrow_gpus: float | None = None
    spot_gpus: float | None = None


TENANT = RowTable(
    "tenant",
    Tenant,
    "tenant",
    {
        "tenant": "text",
        "default_pool": "text",
        "weight": "float8",
        "active": "bool",
        "registered_at": "bigint",
    },
)
POOL = RowTable(
    "pool",
    Pool,
    "pool",
    {"pool": "text", "partition": "int", "time_scale": "float8", "settings": "text"},
)
ENDPOINT = RowTable(
    "endpoint",
    Endpoint,
    "endpoint",
    {"endpoint": "text", "partition": "int", "tokens_per_s": "float8", "batch_tokens": "bigint"},
)
USAGE = RowTable(
    "tenant_usage",
    Usage,
    "usage_id",
    {
        "usage_id": "text",
        "tenant": "text",
        "partition": "int",
        "gpu_ms": "bigint",
        "succeeded": "bigint",
        "failed": "bigint",
        "cancelled": "bigint",
        "preempted": "bigint",
    },
)
QUOTA = RowTable(
    "quota",
    Quota,
    "quota_id",
    {
        "quota_id": "text",
        "tenant": "text",
        "partition": "int",
        "guaranteed_gpus": "float8",
        "borrow_gpus": "float8",
        "spot_gpus": "float8",
    },
)


def fold_tenant(row: Tenant, line: LedgerEvent) -> None:
    if line.type == "tenant.registered.v1":
        row.default_pool, row.weight = line.data["default_pool"], line.data.get("weight", 1.0)
        row.active, row.registered_at = True, row.registered_at or line.at
    else:
        row.active = False


def fold_pool(row: Pool, line: LedgerEvent) -> None:
    row.partition, row.time_scale = line.data["partition"], line.data.get("time_scale", 1.0)
    row.settings = line.raw.decode()


def fold_endpoint(row: Endpoint, line: LedgerEvent) -> None:
    row.partition = line.data["partition"]
    row.tokens_per_s = line.data["tokens_per_s"]
    row.batch_tokens = line.data["batch_tokens"]


def fold_usage(row: Usage, line: LedgerEvent) -> None:
    match line.type:
        case "job.succeeded.v1":
            row.succeeded += 1
        case "job.failed.v1":
            row.failed += 1
        case "job.cancelled.v1":
            row.cancelled += 1
        case "job.preempted.v1":
            row.preempted += 1
    row.gpu_ms += used_ms(line.data)


def fold_quota(row: Quota, line: LedgerEvent) -> None:
    row.guaranteed_gpus = line.data["guaranteed_gpus"]
    row.borrow_gpus = line.data.get("borrow_gpus")
    row.spot_gpus = line.data.get("spot_gpus")
