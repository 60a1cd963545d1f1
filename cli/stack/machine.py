"""This machine as a node of the stack that is started on it."""

from __future__ import annotations

import os
import shutil
import subprocess

import psutil

from infra.supervisor.local_node import LocalNode
from simulator.workload.names import name_of

SLOTS = 2
SLOT = "slot"
"""GPU type of a slot on a machine without a GPU."""

GIB = 2**30
QUERY_TIMEOUT_S = 5.0


def local_node(pool: str) -> LocalNode:
    """Return the node with its GPUs, or with two simulated slots if it has none."""
    names = gpu_names()
    return LocalNode(
        pool=pool,
        gpu_type=name_of(names[0]) if names else SLOT,
        gpus=len(names) or SLOTS,
        cpus=float(max(2, os.cpu_count() or 2)),
        mem_gib=float(max(4, psutil.virtual_memory().total // GIB)),
    )


def gpu_names() -> list[str]:
    """Return the GPU names listed by the driver; empty without a driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=QUERY_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in completed.stdout.splitlines() if line.strip()]
