"""`job_admission` and `job_placement`: a job in each of two ledgers; the view `job` joins them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from shared.projections.ledger_events import LedgerEvent, NotFolded, Payload
from shared.projections.table import BigInt, RowTable

JobPhase = Literal[
    "admitted",
    "deferred",
    "rejected",
    "waiting",
    "placed",
    "running",
    "stopping",
    "backoff",
    "succeeded",
    "failed",
    "cancelled",
]
"""Values of `phase` in the view `job`."""
ENDED_PHASES = frozenset({"rejected", "succeeded", "failed", "cancelled"})
PRIVATE = ("command", "env")


@dataclass(slots=True)
class AdmissionRow:
    """A job in the ledger of admission; times in ms, 0 = not yet."""

    job_id: str
    partition: int
    tenant: str = ""
    name: str = ""
    user_id: str = ""
    priority_class: str = ""
    workers: int = 0
    gpus: float = 0.0
    array_index: int | None = None
    spec: str = "{}"
    state: str = ""
    reason: str = ""
    detail: str = ""
    submitted_at: BigInt = 0
    decided_at: BigInt = 0
    cancel_requested_at: BigInt = 0
    traceparent: str = ""
    pools: str = ""
    transferred_to: str = "null"


@dataclass(slots=True)
class PlacementRow:
    """A job in the ledger of placement; times in ms, 0 = not now."""

    job_id: str
    partition: int
    tenant: str = ""
    user_id: str = ""
    attempt: int = 0
    phase: str = ""
    enqueued_at: BigInt = 0
    waiting_since: BigInt = 0
    placed_at: BigInt = 0
    started_at: BigInt = 0
    ended_at: BigInt = 0
    exit_code: int | None = None
    reason: str = ""
    held_reason: str = ""
    short_gpus: float = 0.0
    preemptions: int = 0
    moves: int = 0
    gpu_ms: BigInt = 0
    ran_ms: BigInt = 0
    nodes: str = "[]"
    failure: str = "null"
    checkpointed_at: BigInt = 0
    checkpoint_step: BigInt = 0
    progressed_at: BigInt = 0
    progress_step: BigInt = 0
    progress_total: BigInt = 0
    expected_end_at: BigInt = 0
    """By its own reports, like the three before."""
    pools: str = ""
    transferred_to: str = "null"


ADMISSION = RowTable("job_admission", AdmissionRow, "job_id")
PLACEMENT = RowTable("job_placement", PlacementRow, "job_id")


def public_spec(spec: Payload) -> str:
    """Return the specification as JSON without its private fields."""
    public = {k: v for k, v in spec.items() if k not in PRIVATE}
    return msgspec.json.encode(public).decode()


def fold_admission(row: AdmissionRow, event: LedgerEvent) -> None:
    data = event.data
    match event.type:
        case "job.admitted.v1":
            describe_job(row, data["spec"])
            row.state, row.reason, row.detail = "admitted", "", ""
            row.submitted_at, row.array_index = data["submitted_at"], data.get("array_index")
        case "job.deferred.v1":
            if spec := data.get("spec"):
                describe_job(row, spec)
                row.submitted_at, row.array_index = event.at, data.get("array_index")
            row.state, row.reason = "deferred", data["reason"]
            row.detail = msgspec.json.encode(data.get("detail", {})).decode()
        case "job.rejected.v1":
            row.state, row.reason, row.detail = "rejected", data["reason"], data.get("detail", "")
            row.name = row.name or data.get("name", "")
            row.submitted_at = row.submitted_at or event.at
        case "job.cancelled.v1":
            row.state, row.reason = "cancelled", data.get("reason", "")
            row.transferred_to = target_of(data)
        case "job.cancel-requested.v1":
            row.cancel_requested_at = event.at
            return
        case _:
            raise NotFolded(event.type)
    row.tenant, row.decided_at = data["tenant"], event.at
    row.traceparent = row.traceparent or event.traceparent


def describe_job(row: AdmissionRow, spec: Payload) -> None:
    """Fill the columns that come from the specification."""
    gang = spec.get("gang", {})
    row.name, row.user_id = spec["name"], spec.get("user", "")
    row.priority_class = spec.get("priority_class", "normal")
    row.workers = gang.get("workers", 1)
    row.gpus = row.workers * gang.get("gpus_per_worker", 1.0)
    row.spec = public_spec(spec)
    row.pools = pools_of(spec)


def pools_of(spec: Payload) -> str:
    """Return the pools of a job that names several, as JSON; empty for other jobs."""
    pools = spec.get("pools")
    return msgspec.json.encode(pools).decode() if pools else ""


def target_of(data: Payload) -> str:
    """Return where a job goes that leaves its pool, as JSON; `null` for one that has ended."""
    return msgspec.json.encode(data.get("transferred_to")).decode()


def fold_placement(row: PlacementRow, event: LedgerEvent) -> None:
    data = event.data
    row.tenant = data.get("tenant") or row.tenant
    row.gpu_ms += used_gpu_ms(data)
    note_failure(row, data)
    match event.type:
        case "job.enqueued.v1" | "job.requeued.v1":
            enter_queue(row, event)
        case "job.held.v1":
            row.held_reason, row.short_gpus = data["reason"], data.get("short_gpus", 0.0)
        case "job.placed.v1":
            row.phase, row.attempt, row.placed_at = "placed", data["attempt"], event.at
            row.held_reason, row.short_gpus = "", 0.0
            nodes = sorted({allocation["node_id"] for allocation in data["allocations"]})
            row.nodes = msgspec.json.encode(nodes).decode()
        case "job.started.v1" | "job.checkpointed.v1" | "job.progressed.v1":
            note_run(row, event)
        case "job.preempted.v1":
            row.phase, row.preemptions = "stopping", row.preemptions + 1
            row.reason = data["reason"]
        case "job.migrated.v1" | "job.resized.v1":
            row.phase, row.moves = "stopping", row.moves + 1
            row.reason = data["reason"]
        case "job.stop-requested.v1" | "job.start-failed.v1":
            row.phase, row.reason = "stopping", data["reason"]
        case "job.attempt-failed.v1":
            row.phase, row.reason, row.exit_code = "backoff", data["reason"], data.get("exit_code")
        case "job.succeeded.v1" | "job.failed.v1" | "job.cancelled.v1":
            end_job(row, event)
        case _:
            raise NotFolded(event.type)


def note_failure(row: PlacementRow, data: Payload) -> None:
    """Keep the first failure of the gang until a later start succeeds."""
    if failure := data.get("failure"):
        row.failure = msgspec.json.encode(failure).decode()


def used_gpu_ms(data: Payload) -> int:
    """Return the GPU-milliseconds of an ended attempt; whole numbers, so that sums are exact."""
    gpu_s: float = data.get("gpu_s", 0.0)
    return round(gpu_s * 1000) if gpu_s else 0


def enter_queue(row: PlacementRow, event: LedgerEvent) -> None:
    row.phase, row.attempt = "waiting", event.data["attempt"]
    if event.type == "job.enqueued.v1":
        spec = event.data["spec"]
        row.user_id, row.pools = spec.get("user", ""), pools_of(spec)
    row.enqueued_at = row.enqueued_at or event.at
    row.waiting_since, row.placed_at, row.started_at = event.at, 0, 0
    forget_reports(row)
    row.held_reason, row.short_gpus = "", 0.0


def forget_reports(row: PlacementRow) -> None:
    """Forget what the job reported in an earlier start."""
    row.checkpointed_at, row.checkpoint_step = 0, 0
    row.progressed_at, row.expected_end_at = 0, 0
    row.progress_step, row.progress_total = 0, 0


def note_run(row: PlacementRow, event: LedgerEvent) -> None:
    """Note a start, or what the job reported of it: its checkpoint, or how far it is."""
    data = event.data
    if event.type == "job.started.v1":
        row.phase, row.started_at, row.failure = "running", event.at, "null"
        forget_reports(row)
    elif event.type == "job.checkpointed.v1":
        row.checkpointed_at = row.started_at + data["worked_ms"]
        row.checkpoint_step = data.get("step", 0)
    else:
        row.progressed_at, row.expected_end_at = event.at, data["ends_at"]
        row.progress_step, row.progress_total = data["step"], data["steps_total"]


def end_job(row: PlacementRow, event: LedgerEvent) -> None:
    data = event.data
    row.phase = event.type.split(".")[1]
    row.ended_at, row.reason = event.at, data.get("reason", "")
    row.exit_code = 0 if row.phase == "succeeded" else data.get("exit_code")
    row.ran_ms = data.get("ran_ms", 0)
    row.transferred_to = target_of(data)
    row.held_reason, row.short_gpus = "", 0.0
