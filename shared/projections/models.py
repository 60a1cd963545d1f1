"""Which event changes which row: the one map from wire names to read models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.projections import answers, faults, jobs, llm, nodes, queue, tenants
from shared.projections.audit import AUDIT
from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import RowTable

Fresh = Callable[[str, LedgerEvent], Any]
Fold = Callable[[Any, LedgerEvent], None]


@dataclass(frozen=True, slots=True)
class Projection:
    """Rows of one table: the key of an event's row, a row that is new, and how an event folds."""

    table: RowTable[Any]
    key: Callable[[LedgerEvent], str]
    fresh: Fresh
    fold: Fold


def field(name: str) -> Callable[[LedgerEvent], str]:
    return lambda line: str(line.data[name])


def per_lane(name: str) -> Callable[[LedgerEvent], str]:
    return lambda line: f"{line.partition}/{line.data[name]}"


def lane(line: LedgerEvent) -> str:
    return str(line.partition)


def with_partition(row: type[Any]) -> Fresh:
    return lambda key, line: row(key, line.partition)


def of_tenant(row: type[Any]) -> Fresh:
    return lambda key, line: row(key, line.data["tenant"], line.partition)


ADMISSION = Projection(
    jobs.ADMISSION, field("job_id"), with_partition(jobs.Admission), jobs.fold_admission
)
PLACEMENT = Projection(
    jobs.PLACEMENT, field("job_id"), with_partition(jobs.Placement), jobs.fold_placement
)
NODE = Projection(nodes.NODE, field("node_id"), with_partition(nodes.Node), nodes.fold_node)
RANK = Projection(queue.RANK, lane, with_partition(queue.QueueRank), queue.fold_rank)
TENANT = Projection(
    tenants.TENANT, field("tenant"), lambda k, line: tenants.Tenant(k), tenants.fold_tenant
)
POOL = Projection(tenants.POOL, field("pool"), lambda k, line: tenants.Pool(k), tenants.fold_pool)
ENDPOINT = Projection(
    tenants.ENDPOINT, field("endpoint"), lambda k, line: tenants.Endpoint(k), tenants.fold_endpoint
)
USAGE = Projection(tenants.USAGE, per_lane("tenant"), of_tenant(tenants.Usage), tenants.fold_usage)
QUOTA = Projection(tenants.QUOTA, per_lane("tenant"), of_tenant(tenants.Quota), tenants.fold_quota)
COMMAND = Projection(
    answers.COMMAND, field("command_id"), lambda k, line: answers.Answer(k), answers.fold_answer
)
FAULT = Projection(faults.FAULT, field("fault_id"), with_partition(faults.Fault), faults.fold_fault)
LLM_REQUEST = Projection(
    llm.LLM_REQUEST,
    lambda line: f"{line.partition}/{line.data['tenant']}/{line.data['request_id']}",
    lambda k, line: llm.LlmRequest(k, line.partition, line.data["request_id"]),
    llm.fold_request,
)
LLM_TENANT = Projection(
    llm.LLM_TENANT,
    per_lane("tenant"),
    lambda k, line: llm.LlmTenant(k, line.partition, line.data["tenant"]),
    llm.fold_account,
)

TABLES: tuple[RowTable[Any], ...] = (
    *(
        model.table
        for model in (
            ADMISSION,
            PLACEMENT,
            NODE,
            RANK,
            TENANT,
            POOL,
            ENDPOINT,
            USAGE,
            QUOTA,
            COMMAND,
            FAULT,
            LLM_REQUEST,
            LLM_TENANT,
        )
    ),
    nodes.LEASE,
    answers.DEAD,
    AUDIT,
)

FOLDED: dict[tuple[str, str], tuple[Projection, ...]] = {
    ("access", "tenant.registered.v1"): (TENANT,),
    ("access", "tenant.retired.v1"): (TENANT,),
    ("access", "pool.configured.v1"): (POOL,),
    ("access", "endpoint.configured.v1"): (ENDPOINT,),
    ("admission", "job.admitted.v1"): (ADMISSION,),
    ("admission", "job.deferred.v1"): (ADMISSION,),
    ("admission", "job.rejected.v1"): (ADMISSION,),
    ("admission", "job.cancelled.v1"): (ADMISSION,),
    ("admission", "job.cancel-requested.v1"): (ADMISSION,),
    ("admission", "quota.changed.v1"): (QUOTA,),
    ("priority", "queue.ranked.v1"): (RANK,),
    **{
        ("placement", f"job.{verb}.v1"): (PLACEMENT,)
        for verb in (
            "enqueued",
            "held",
            "placed",
            "started",
            "stop-requested",
            "start-failed",
            "migrated",
            "resized",
        )
    },
    **{
        ("placement", f"job.{verb}.v1"): (PLACEMENT, USAGE)
        for verb in ("succeeded", "failed", "cancelled", "preempted", "requeued", "attempt-failed")
    },
    **{
        ("placement", f"node.{verb}.v1"): (NODE,)
        for verb in ("joined", "lost", "cordoned", "uncordoned", "health-noted")
    },
    ("failslow", "fault.suspected.v1"): (FAULT,),
    ("failslow", "fault.cleared.v1"): (FAULT,),
    ("failslow", "fault.dismissed.v1"): (FAULT,),
    ("throttle", "llm.queued.v1"): (LLM_REQUEST,),
    ("throttle", "llm.started.v1"): (LLM_REQUEST,),
    ("throttle", "llm.finished.v1"): (LLM_REQUEST, LLM_TENANT),
    ("throttle", "llm.rejected.v1"): (LLM_REQUEST, LLM_TENANT),
}
ANSWERS = frozenset({"command.accepted.v1", "command.refused.v1"})
"""Every service answers: their read model does not depend on the ledger."""


def touched(line: LedgerEvent) -> tuple[Projection, ...]:
    if line.type in ANSWERS:
        return (COMMAND,)
    return FOLDED.get((line.ledger, line.type), ())
