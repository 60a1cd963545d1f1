"""`node` and `allocation`; which GPU is free is the view `gpu` of both."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import RowTable


@dataclass(slots=True)
class Node:
    """A node as placement sees it; times in ms, 0 = not."""

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
    joined_at: int = 0
    lost_at: int = 0
    health: float = 1.0


@dataclass(slots=True)
class Lease:
    """One worker's allocation; times in ms, 0 = not yet."""

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
    placed_at: int
    released_at: int = 0
    reason: str = ""
    exit_code: int | None = None


NODE = RowTable(
    "node",
    Node,
    "node_id",
    {
        "node_id": "text",
        "partition": "int",
        "incarnation": "text",
        "executor_id": "text",
        "backend": "text",
        "gpu_type": "text",
        "gpus": "int",
        "cpus": "float8",
        "mem_gib": "float8",
        "rack": "text",
        "labels": "text",
        "alive": "bool",
        "cordoned": "bool",
        "draining": "bool",
        "reason": "text",
        "joined_at": "bigint",
        "lost_at": "bigint",
        "health": "float8",
    },
)
LEASE = RowTable(
    "allocation",
    Lease,
    "allocation_id",
    {
        "allocation_id": "text",
        "partition": "int",
        "job_id": "text",
        "tenant": "text",
        "attempt": "int",
        "rank": "int",
        "node_id": "text",
        "gpus": "text",
        "gpu_milli": "int",
        "cpus": "float8",
        "mem_gib": "float8",
        "placed_at": "bigint",
        "released_at": "bigint",
        "reason": "text",
        "exit_code": "int",
    },
)


def fold_node(row: Node, line: LedgerEvent) -> None:
    data = line.data
    match line.type:
        case "node.joined.v1":
            for name in ("incarnation", "executor_id", "backend", "gpu_type", "gpus"):
                setattr(row, name, data[name])
            row.cpus, row.mem_gib, row.rack = data["cpus"], data["mem_gib"], data.get("rack", "")
            row.labels = msgspec.json.encode(data.get("labels", {})).decode()
            row.alive, row.joined_at, row.lost_at = True, line.at, 0
        case "node.lost.v1":
            row.alive, row.lost_at, row.reason = False, line.at, data["reason"]
        case "node.health-noted.v1":
            row.health = data["health"]
        case "node.cordoned.v1":
            row.cordoned, row.draining = True, data.get("draining", False)
            row.reason = data.get("reason", "")
        case "node.uncordoned.v1":
            row.cordoned, row.draining, row.reason = False, False, ""


def leases_of(line: LedgerEvent) -> list[Lease]:
    """The rows that a JobPlaced makes: one per worker."""
    data = line.data
    return [
        Lease(
            allocation_id=f"{line.position}/{lease['rank']}",
            partition=line.partition,
            job_id=data["job_id"],
            tenant=data["tenant"],
            attempt=data["attempt"],
            rank=lease["rank"],
            node_id=lease["node_id"],
            gpus=msgspec.json.encode(lease.get("gpus", [])).decode(),
            gpu_milli=lease.get("gpu_milli", 1000),
            cpus=lease.get("cpus", 0.0),
            mem_gib=lease.get("mem_gib", 0.0),
            placed_at=line.at,
        )
        for lease in data["allocations"]
    ]


def release(row: Lease, line: LedgerEvent) -> None:
    row.released_at, row.reason = line.at, line.data["reason"]
    row.exit_code = line.data.get("exit_code")
