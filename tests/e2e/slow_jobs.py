"""Jobs on slowed nodes: a pool of virtual nodes, the events of a job, and its second attempt."""

from __future__ import annotations

from tests.e2e.stand import POOL, Json, Stand


def virtual_nodes(count: int) -> Json:
    """Return the inventory of a pool with so many nodes of one GPU, `n-0` and so on."""
    names = f"n-{{0..{count - 1}}}"
    node = {"gpu_type": "a100", "gpus": 1, "cpus": 8, "mem_gib": 64}
    return {"pool": POOL, "backend": "virtual", "nodes": [{"id": names, "count": count, **node}]}


def events(stand: Stand, job_id: str, type: str, level: str = "") -> list[Json]:
    """Return the data of the events of a job of one type, and of one level if it is given."""
    timeline = stand.get(f"/v1/jobs/{job_id}/timeline?limit=1000") or {"items": []}
    rows = [row["data"] for row in timeline["items"] if row["type"] == type]
    return [row for row in rows if not level or row.get("level", level) == level]


def second_attempt(stand: Stand, job_id: str) -> Json | None:
    """Return the row of a job while its second attempt runs."""
    row = stand.job(job_id)
    return row if row and row["phase"] == "running" and row["attempt"] == 2 else None
