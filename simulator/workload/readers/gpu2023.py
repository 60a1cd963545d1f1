"""`openb_pod_list_*.csv` of Alibaba's cluster-trace-gpu-v2023 (ATC '23, research use).

Columns: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase, creation_time,
deletion_time, scheduled_time. A pod of one GPU may request a part of it (`gpu_milli`); `gpu_spec`
lists the types that it may run on, `|` between them. Pods that still ran when the trace ended have
its end as their deletion_time: their duration is what was seen of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simulator.workload.delimited import Columns, Sheet, gather_blocks, map_texts, read_blocks
from simulator.workload.readers.runs import drop_left_out, run_columns, waits_s
from simulator.workload.table import Raw

REQUIRED = ("name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time")
OPTIONAL = ("cpu_milli", "memory_mib", "gpu_spec", "qos", "pod_phase")
NAMES = {
    "job_id": "name",
    "gpus": "num_gpu",
    "cpus": "cpu_milli",
    "mem_gib": "memory_mib",
    "gpu_type": "gpu_spec",
    "submit_s": "creation_time",
    "duration_s": "deletion_time",
    "queue_s": "scheduled_time",
}
PHASES = {"succeeded": "completed", "failed": "failed", "running": "running_at_end"}


def read_raw(file: Path) -> Raw:
    """Read the pods, in seconds of the trace's own clock."""
    return drop_left_out(
        file, gather_blocks(read_blocks(file, REQUIRED, OPTIONAL), _columns), NAMES
    )


def _columns(sheet: Sheet) -> Columns:
    created_s, scheduled_s = sheet.number("creation_time"), sheet.number("scheduled_time")
    gpus = sheet.number("num_gpu")
    part = sheet.number("gpu_milli") / 1000
    state = map_texts(sheet.text("pod_phase"), PHASES, "pending")
    return {
        "job_id": sheet.text("name"),
        "gpu_type": sheet.text("gpu_spec"),
        "qos": sheet.text("qos"),
        "submit_s": created_s,
        "queue_s": waits_s(created_s, scheduled_s),
        "gpus": np.where((gpus == 1) & ~np.isnan(part), part, gpus),
        "cpus": sheet.number("cpu_milli") / 1000,
        "mem_gib": sheet.number("memory_mib") / 1024,
        **run_columns(scheduled_s, sheet.number("deletion_time"), state),
    }
