"""`job_admission` and `job_placement`: what each ledger says of a job; `job` is a view of both."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.projections.ledger_events import LedgerEvent, Payload
from shared.projections.table import RowTable

PRIVATE = ("command", "env")


@dataclass(slots=True)
class Admission:
    """A job as admission sees it; times in ms, 0 = not yet."""

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
    submitted_at: int = 0
    decided_at: int = 0
    cancel_requested_at: int = 0
    traceparent: str = ""


@dataclass(slots=True)
class Placement:
    """A job as placement sees it; times in ms, 0 = not now."""

    job_id: str
    partition: int
    tenant: str = ""
    attempt: int = 0
    phase: str = ""
    enqueued_at: int = 0
    waiting_since: int = 0
    placed_at: int = 0
    started_at: int = 0
    ended_at: int = 0
    exit_code: int | None = None
    reason: str = ""
    held_reason: str = ""
    short_gpus: float = 0.0
    preemptions: int = 0
    moves: int = 0
    gpu_ms: int = 0
    ran_ms: int = 0
    nodes: str = "[]"


ADMISSION = RowTable(
    "job_admission",
    Admission,
    "job_id",
    {
        "job_id": "text",
        "partition": "int",
        "tenant": "text",
        "name": "text",
        "user_id": "text",
        "priority_class": "text",
        "workers": "int",
        "gpus": "float8",
        "array_index": "int",
        "spec": "text",
        "state": "text",
        "reason": "text",
        "detail": "text",
        "submitted_at": "bigint",
        "decided_at": "bigint",
        "cancel_requested_at": "bigint",
        "traceparent": "text",
    },
)
PLACEMENT = RowTable(
    "job_placement",
    Placement,
    "job_id",
    {
        "job_id": "text",
        "partition": "int",
        "tenant": "text",
        "attempt": "int",
        "phase": "text",
        "enqueued_at": "bigint",
        "waiting_since": "bigint",
        "placed_at": "bigint",
        "started_at": "bigint",
        "ended_at": "bigint",
        "exit_code": "int",
        "reason": "text",
        "held_reason": "text",
        "short_gpus": "float8",
        "preemptions": "int",
        "moves": "int",
        "gpu_ms": "bigint",
        "ran_ms": "bigint",
        "nodes": "text",
    },
)


def public_spec(spec: Payload) -> str:
    kept = {k: v for k, v in spec.items() if k not in PRIVATE}
    return msgspec.json.encode(kept).decode()


def fold_admission(row: Admission, line: LedgerEvent) -> None:
    data = line.data
    match line.type:
        case "job.admitted.v1":
            describe(row, data["spec"])
            row.state, row.reason, row.detail = "admitted", "", ""
            row.submitted_at, row.array_index = data["submitted_at"], data.get("array_index")
        case "job.deferred.v1":
            if spec := data.get("spec"):
                describe(row, spec)
                row.submitted_at, row.array_index = line.at, data.get("array_index")
            row.state, row.reason = "deferred", data["reason"]
            row.detail = msgspec.json.encode(data.get("detail", {})).decode()
        case "job.rejected.v1":
            row.state, row.reason, row.detail = "rejected", data["reason"], data.get("detail", "")
            row.name = row.name or data.get("name", "")
            row.submitted_at = row.submitted_at or line.at
        case "job.cancelled.v1":
            row.state, row.reason = "cancelled", data.get("reason", "")
        case "job.cancel-requested.v1":
            row.cancel_requested_at = line.at
            return
        case _:
            return
    row.tenant, row.decided_at = data["tenant"], line.at
    row.traceparent = row.traceparent or line.traceparent


def describe(row: Admission, spec: Payload) -> None:
    gang = spec.get("gang", {})
    row.name, row.user_id = spec["name"], spec.get("user", "")
    row.priority_class = spec.get("priority_class", "normal")
    row.workers = gang.get("workers", 1)
    row.gpus = row.workers * gang.get("gpus_per_worker", 1.0)
    row.spec = public_spec(spec)


def fold_placement(row: Placement, line: LedgerEvent) -> None:
    data = line.data
    row.tenant = data.get("tenant") or row.tenant
    row.gpu_ms += used_ms(data)
    match line.type:
        case "job.enqueued.v1" | "job.requeued.v1":
            wait_anew(row, line)
        case "job.held.v1":
            row.held_reason, row.short_gpus = data["reason"], data.get("short_gpus", 0.0)
        case "job.placed.v1":
            row.phase, row.attempt, row.placed_at = "placed", data["attempt"], line.at
            row.held_reason, row.short_gpus = "", 0.0
            nodes = sorted({lease["node_id"] for lease in data["allocations"]})
            row.nodes = msgspec.json.encode(nodes).decode()
        case "job.started.v1":
            row.phase, row.started_at = "running", line.at
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
            finish(row, line)


def used_ms(data: Payload) -> int:
    """GPU-milliseconds that the end of an attempt tells; whole ones, so that sums are exact."""
    gpu_s: float = data.get("gpu_s", 0.0)
    return round(gpu_s * 1000)


def wait_anew(row: Placement, line: LedgerEvent) -> None:
    row.phase, row.attempt = "waiting", line.data["attempt"]
    row.enqueued_at = row.enqueued_at or line.at
    row.waiting_since, row.placed_at, row.started_at = line.at, 0, 0
    row.held_reason, row.short_gpus = "", 0.0


def finish(row: Placement, line: LedgerEvent) -> None:
    data = line.data
    row.phase = line.type.split(".")[1]
    row.ended_at, row.reason = line.at, data.get("reason", "")
    row.exit_code = 0 if row.phase == "succeeded" else data.get("exit_code")
    row.ran_ms = data.get("ran_ms", 0)
    row.held_reason, row.short_gpus = "", 0.0
