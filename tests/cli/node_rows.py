"""Rows of nodes, as the API returns them."""

from __future__ import annotations

from cli.api.http import Json

NODE: Json = {
    "node_id": "vm",
    "pool": "gpu",
    "backend": "agent",
    "gpu_type": "h200",
    "gpus": 8,
    "used_milli": [0] * 8,
    "state": "joined",
    "alive": True,
    "draining": False,
    "cordoned": False,
    "health": 1.0,
    "reason": "",
    "silent_ms": 0,
    "lost_after_ms": 90_000,
    "joined_at": 1,
    "lost_at": 0,
    "suspected_at": 0,
    "identity": "approved",
}
SILENT: Json = {**NODE, "state": "suspected", "silent_ms": 60_000, "suspected_at": 2}
LOST: Json = {**NODE, "alive": False, "state": "lost", "reason": "silent", "lost_at": 3}
