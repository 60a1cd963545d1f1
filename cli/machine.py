"""What this machine offers to the pool of real processes."""

from __future__ import annotations

import os
import shutil
import subprocess

import psutil

from simulator.workload.names import name_of

SLOTS = 2
SLOT = "slot"
"""GPU type of a slot where no GPU is: it holds a place, and computes nothing."""

GIB = 2**30
ASK_S = 5.0


def inventory(pool: str) -> dict[str, object]:
    """One node: its GPUs, or two simulated slots where there are none."""
    names = gpu_names()
    node = {
        "id": "local-0",
        "gpu_type": name_of(names[0]) if names else SLOT,
        "gpus": len(names) or SLOTS,
        "cpus": max(2, os.cpu_count() or 2),
        "mem_gib": max(4, psutil.virtual_memory().total // GIB),
    }
    return {"pool": pool, "backend": "process", "nodes": [node]}


def gpu_names() -> list[str]:
    """As the driver lists them; none where there is no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    question = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        told = subprocess.run(question, capture_output=True, text=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in told.stdout.splitlines() if line.strip()]
