"""`node` and `allocation`; the view `gpu` of both shows which GPUs are free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from shared.contracts.nodes import STILL_CORDONED
from shared.projections.ledger_events import LedgerEvent, NotFolded
from shared.projections.table import BigInt, RowTable

NO_LIMITS = "none"
LOSSES = frozenset({"silent", "left", "replaced", "declared"})
OUTLIVES_JOIN = "prolog_failed: "
"""Begins reasons of cordons by the node itself that go on until an operator ends them."""
REJOINED = "joined anew after it was declared lost"
HELD_BACK = "another machine of this name waits until nothing of this one can be alive"


@dataclass(slots=True)
class NodeRow:
    """A node in the ledger of placement; times in ms, 0 = not."""

    node_id: str
    partition: int
    incarnation: str = ""
    executor_id: str = ""
    backend: str = ""
    gpu_type: str = ""
    gpus: int = 0
    cpus: float = 0.0
    mem_gib: float = 0.0
    rack: str = ""
    labels: str = "{}"
    alive: bool = True
    cordoned: bool = False
    draining: bool = False
    reason: str = ""
    joined_at: BigInt = 0
    lost_at: BigInt = 0
    health: float = 1.0
    state: str = ""
    """`joined`, `suspected`, `declared` or `lost`."""
    silent_ms: BigInt = 0
    suspected_at: BigInt = 0
    lost_after_ms: BigInt = 0
    """ms of silence at which a suspected node is lost; 0 = unknown, or never."""
    generation: BigInt = 0
    unusable_gpus: str = "[]"
    fencing: str = ""
    limits: str = ""
    """`v1` or `v2` of control groups, `none`; empty: no node with an agent, or not known."""
    injection: str = "null"
    """The injected fault, its factor and the ms at which it ends, as JSON."""
    problems: str = "[]"
    """Of a node that lives: `problem`, `detail`, `gpus`, `since_at` of each, as JSON."""
    suspicions: str = "[]"
    """Reasons for its health: `fault_id`, `gpu`, `slowdown`, `since_at`, `until`, as JSON."""


@dataclass(slots=True)
class AllocationRow:
    """The allocation of one worker; times in ms, 0 = not yet."""

    allocation_id: str
    partition: int
    job_id: str
    tenant: str
    attempt: int
    rank: int
    node_id: str
    gpus: str
    gpu_milli: int
    cpus: float
    mem_gib: float
    placed_at: BigInt
    released_at: BigInt = 0
    reason: str = ""
    exit_code: int | None = None


NODE = RowTable("node", NodeRow, "node_id")
ALLOCATION = RowTable("allocation", AllocationRow, "allocation_id")


def fold_node(row: NodeRow, event: LedgerEvent) -> None:
    data = event.data
    match event.type:
        case "node.joined.v1":
            fold_joined(row, event)
        case "node.lost.v1" | "node.suspected.v1" | "node.heard.v1":
            fold_silence(row, event)
        case "node.held-back.v1":
            row.reason = f"{data['reason']}: {HELD_BACK}"
        case "node.health-noted.v1":
            fold_health(row, event)
        case "node.problem-noted.v1":
            fold_problem(row, event)
        case "node.cordoned.v1":
            fold_cordoned(row, data)
        case "node.uncordoned.v1":
            row.cordoned, row.draining, row.reason = False, False, loss_of(row)
        case "fault.injected.v1":
            injection = {name: data[name] for name in ("fault", "factor", "until", "reason")}
            row.injection = msgspec.json.encode(injection).decode()
        case "fault.injection-ended.v1":
            row.injection = "null"
        case _:
            raise NotFolded(event.type)


def fold_problem(row: NodeRow, event: LedgerEvent) -> None:
    data, name = event.data, event.data["problem"]
    problems = [known for known in msgspec.json.decode(row.problems) if known["problem"] != name]
    if data["present"]:
        detail = data.get("detail", "")
        gpus = data.get("gpus", [])
        problems.append({"problem": name, "detail": detail, "gpus": gpus, "since_at": event.at})
    row.problems = msgspec.json.encode(problems).decode()


def fold_health(row: NodeRow, event: LedgerEvent) -> None:
    """Apply the slowdown by one suspicion, of the node or of one GPU; 1 ends the suspicion."""
    data, fault_id = event.data, event.data["fault_id"]
    row.health = data["health"]
    known = {own["fault_id"]: own for own in msgspec.json.decode(row.suspicions)}
    before = known.pop(fault_id, {"since_at": event.at})
    if data["slowdown"] > 1:
        known[fault_id] = {
            "fault_id": fault_id,
            "gpu": data.get("gpu"),
            "slowdown": data["slowdown"],
            "since_at": before["since_at"],
            "until": data.get("until"),
        }
    row.suspicions = msgspec.json.encode(list(known.values())).decode()


def fold_cordoned(row: NodeRow, data: dict[str, Any]) -> None:
    reason = data.get("reason", "")
    if reason == STILL_CORDONED and row.reason.startswith(OUTLIVES_JOIN):
        reason = row.reason
    row.reason = "; ".join(filter(None, [loss_of(row), reason]))
    row.cordoned, row.draining = True, data.get("draining", False)


def loss_of(row: NodeRow) -> str:
    """Return how the node was lost; empty for one that lives."""
    loss = row.reason.partition("; ")[0]
    return loss if loss in LOSSES and not row.alive else ""


def cordon_reason(row: NodeRow) -> str:
    """Return why the node is cordoned, without how it was lost; empty for one that is not."""
    if not row.cordoned or row.reason.endswith(HELD_BACK):
        return ""
    return row.reason.removeprefix(loss_of(row)).removeprefix("; ")


def fold_joined(row: NodeRow, event: LedgerEvent) -> None:
    data = event.data
    for name in ("incarnation", "executor_id", "backend", "gpu_type", "gpus"):
        setattr(row, name, data[name])
    row.cpus, row.mem_gib, row.rack = data["cpus"], data["mem_gib"], data.get("rack", "")
    row.labels = msgspec.json.encode(data.get("labels", {})).decode()
    row.generation, row.fencing = data.get("generation", 0), data.get("fencing", "")
    row.limits = (data.get("limits") or NO_LIMITS) if data["backend"] == "agent" else ""
    row.unusable_gpus = msgspec.json.encode(data.get("unusable_gpus", [])).decode()
    row.problems = "[]"
    # A cordon that goes on is decided again behind the join; how it was lost is over.
    reason = cordon_reason(row)
    rejoined = REJOINED if row.state == "declared" else ""
    row.reason = reason if reason.startswith(OUTLIVES_JOIN) else rejoined
    row.cordoned, row.draining = False, False
    row.alive, row.joined_at, row.lost_at = True, event.at, 0
    row.state, row.silent_ms, row.suspected_at = "joined", 0, 0


def fold_silence(row: NodeRow, event: LedgerEvent) -> None:
    """Apply the loss of a node, its silence, or the end of it; a lost node stays lost."""
    data = event.data
    match event.type:
        case "node.lost.v1":
            row.reason = "; ".join(filter(None, [data["reason"], cordon_reason(row)]))
            row.alive, row.lost_at, row.problems = False, event.at, "[]"
            row.silent_ms = round(data.get("silent_s", 0.0) * 1000)
            row.state = "declared" if data["reason"] == "declared" else "lost"
        case "node.suspected.v1":
            row.silent_ms, row.lost_after_ms = data["silent_ms"], data.get("lost_after_ms", 0)
            row.suspected_at = row.suspected_at or event.at
        case _:
            row.silent_ms, row.suspected_at = 0, 0
    if row.alive:
        row.state = "suspected" if row.suspected_at else "joined"


def allocation_rows(event: LedgerEvent) -> list[AllocationRow]:
    """Return the rows of one JobPlaced, one per worker."""
    data = event.data
    return [
        AllocationRow(
            allocation_id=f"{event.position}/{allocation['rank']}",
            partition=event.partition,
            job_id=data["job_id"],
            tenant=data["tenant"],
            attempt=data["attempt"],
            rank=allocation["rank"],
            node_id=allocation["node_id"],
            gpus=msgspec.json.encode(allocation.get("gpus", [])).decode(),
            gpu_milli=allocation.get("gpu_milli", 1000),
            cpus=allocation.get("cpus", 0.0),
            mem_gib=allocation.get("mem_gib", 0.0),
            placed_at=event.at,
        )
        for allocation in data["allocations"]
    ]


def release_allocation(row: AllocationRow, event: LedgerEvent) -> None:
    row.released_at, row.reason = event.at, event.data["reason"]
    row.exit_code = event.data.get("exit_code")
