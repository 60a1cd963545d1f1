"""The projections: which rows of which read model each event changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.projections import (
    answers,
    dead_letters,
    faults,
    job_usage,
    jobs,
    llm,
    mitigation,
    nodes,
    queue,
    tenants,
)
from shared.projections.audit import AUDIT
from shared.projections.ledger_events import LedgerEvent
from shared.projections.llm_endpoints import LLM_ENDPOINT as LLM_ENDPOINTS
from shared.projections.llm_endpoints import LlmEndpointRow, fold_llm_endpoint
from shared.projections.llm_fairness import LLM_BACKLOG, LLM_FAIRNESS, LLM_OPEN
from shared.projections.llm_usage import LLM_USAGE, request_key
from shared.projections.table import RowTable

NewRow = Callable[[str, LedgerEvent], Any]
Fold = Callable[[Any, LedgerEvent], None]


@dataclass(frozen=True, slots=True)
class Projection:
    """The fold of events into the rows of one table."""

    table: RowTable[Any]
    key: Callable[[LedgerEvent], str]
    """Key of the row that an event changes."""
    new_row: NewRow
    """Makes the row of a key that is not stored yet."""
    fold: Fold


def by_field(name: str) -> Callable[[LedgerEvent], str]:
    return lambda event: str(event.data[name])


def by_lane_and_field(name: str) -> Callable[[LedgerEvent], str]:
    return lambda event: f"{event.partition}/{event.data[name]}"


def by_lane(event: LedgerEvent) -> str:
    return str(event.partition)


def new_row(row: type[Any]) -> NewRow:
    return lambda key, event: row(key)


def new_row_of_lane(row: type[Any]) -> NewRow:
    return lambda key, event: row(key, event.partition)


def new_row_of_tenant(row: type[Any]) -> NewRow:
    return lambda key, event: row(key, event.data["tenant"], event.partition)


ADMISSION = Projection(
    jobs.ADMISSION, by_field("job_id"), new_row_of_lane(jobs.AdmissionRow), jobs.fold_admission
)
PLACEMENT = Projection(
    jobs.PLACEMENT, by_field("job_id"), new_row_of_lane(jobs.PlacementRow), jobs.fold_placement
)
NODE = Projection(nodes.NODE, by_field("node_id"), new_row_of_lane(nodes.NodeRow), nodes.fold_node)
QUEUE_RANK = Projection(
    queue.QUEUE_RANK, by_lane, new_row_of_lane(queue.QueueRankRow), queue.fold_order
)
TENANT = Projection(
    tenants.TENANT, by_field("tenant"), new_row(tenants.TenantRow), tenants.fold_tenant
)
POOL = Projection(tenants.POOL, by_field("pool"), new_row(tenants.PoolRow), tenants.fold_pool)
ENDPOINT = Projection(
    tenants.ENDPOINT, by_field("endpoint"), new_row(tenants.EndpointRow), tenants.fold_endpoint
)
USAGE = Projection(
    tenants.USAGE,
    by_lane_and_field("tenant"),
    new_row_of_tenant(tenants.UsageRow),
    tenants.fold_usage,
)
LANE_PRICE = Projection(
    job_usage.LANE_PRICE, by_lane, new_row_of_lane(job_usage.LanePriceRow), job_usage.fold_price
)
QUOTA = Projection(
    tenants.QUOTA,
    by_lane_and_field("tenant"),
    new_row_of_tenant(tenants.QuotaRow),
    tenants.fold_quota,
)
COMMAND = Projection(
    answers.COMMAND, by_field("command_id"), new_row(answers.CommandRow), answers.fold_answer
)
DEAD_LETTER = Projection(
    dead_letters.DEAD_LETTER,
    dead_letters.dead_id_of,
    new_row(dead_letters.DeadLetterRow),
    dead_letters.fold_dead_letter,
)
FAULT = Projection(
    faults.FAULT, by_field("fault_id"), new_row_of_lane(faults.FaultRow), faults.fold_fault
)
MITIGATION = Projection(
    mitigation.MITIGATION,
    by_lane,
    new_row_of_lane(mitigation.MitigationRow),
    mitigation.fold_mitigation,
)
LLM_REQUEST = Projection(
    llm.LLM_REQUEST,
    request_key,
    lambda key, event: llm.LlmRequestRow(key, event.partition, event.data["request_id"]),
    llm.fold_request,
)
LLM_TENANT = Projection(
    llm.LLM_TENANT,
    by_lane_and_field("tenant"),
    lambda key, event: llm.LlmTenantRow(key, event.partition, event.data["tenant"]),
    llm.fold_account,
)

LLM_ENDPOINT = Projection(
    LLM_ENDPOINTS,
    by_lane_and_field("endpoint"),
    lambda key, event: LlmEndpointRow(key, event.partition, event.data["endpoint"]),
    fold_llm_endpoint,
)

TABLES: tuple[RowTable[Any], ...] = (
    *(
        projection.table
        for projection in (
            ADMISSION,
            PLACEMENT,
            NODE,
            QUEUE_RANK,
            TENANT,
            POOL,
            ENDPOINT,
            USAGE,
            QUOTA,
            LANE_PRICE,
            COMMAND,
            DEAD_LETTER,
            FAULT,
            MITIGATION,
            LLM_REQUEST,
            LLM_TENANT,
            LLM_ENDPOINT,
        )
    ),
    nodes.ALLOCATION,
    job_usage.JOB_USAGE,
    LLM_USAGE,
    LLM_OPEN,
    LLM_BACKLOG,
    LLM_FAIRNESS,
    AUDIT,
)

PROJECTIONS: dict[tuple[str, str], tuple[Projection, ...]] = {
    ("access", "tenant.registered.v1"): (TENANT,),
    ("access", "tenant.retired.v1"): (TENANT,),
    ("access", "pool.configured.v1"): (POOL,),
    ("access", "pool.deleted.v1"): (POOL,),
    ("access", "endpoint.configured.v2"): (ENDPOINT,),
    ("access", "endpoint.deleted.v1"): (ENDPOINT,),
    ("admission", "job.admitted.v1"): (ADMISSION,),
    ("admission", "job.deferred.v1"): (ADMISSION,),
    ("admission", "job.rejected.v1"): (ADMISSION,),
    ("admission", "job.cancelled.v1"): (ADMISSION,),
    ("admission", "job.cancel-requested.v1"): (ADMISSION,),
    ("admission", "quota.changed.v1"): (QUOTA,),
    ("priority", "queue.ranked.v1"): (QUEUE_RANK,),
    ("priority", "queue.reranked.v1"): (QUEUE_RANK,),
    **{
        ("placement", f"job.{verb}.v1"): (PLACEMENT,)
        for verb in (
            "enqueued",
            "held",
            "placed",
            "started",
            "checkpointed",
            "progressed",
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
        for verb in (
            "joined",
            "held-back",
            "lost",
            "suspected",
            "heard",
            "cordoned",
            "uncordoned",
            "health-noted",
            "problem-noted",
        )
    },
    ("failslow", "fault.suspected.v1"): (FAULT,),
    ("failslow", "fault.cleared.v1"): (FAULT,),
    ("failslow", "fault.dismissed.v1"): (FAULT,),
    ("failslow", "mitigation.accounted.v1"): (FAULT,),
    ("failslow", "mitigation.breaker.v1"): (MITIGATION,),
    ("failslow", "thresholds.adjusted.v1"): (MITIGATION,),
    job_usage.PRICED: (LANE_PRICE,),
    ("placement", "fault.injected.v1"): (NODE,),
    ("placement", "fault.injection-ended.v1"): (NODE,),
    ("throttle", "endpoint.configured.v2"): (LLM_ENDPOINT,),
    ("throttle", "endpoint.deleted.v1"): (LLM_ENDPOINT,),
    ("throttle", "llm.capacity-noted.v1"): (LLM_ENDPOINT,),
    ("throttle", "llm.queued.v1"): (LLM_REQUEST,),
    ("throttle", "llm.started.v1"): (LLM_REQUEST,),
    ("throttle", "llm.finished.v1"): (LLM_REQUEST, LLM_TENANT),
    ("throttle", "llm.rejected.v1"): (LLM_REQUEST, LLM_TENANT),
}
"""Ledger and event type to the projections that it changes."""
ANSWERS = frozenset({"command.accepted.v1", "command.refused.v1"})
"""Answers to commands; like `dead_letters.EVENTS` they are of every ledger."""


def projections_of(event: LedgerEvent) -> tuple[Projection, ...]:
    """Return the projections that an event changes; none for most internal events."""
    if event.type in ANSWERS:
        return (COMMAND,)
    if event.type in dead_letters.EVENTS:
        return (DEAD_LETTER,)
    return PROJECTIONS.get((event.ledger, event.type), ())
