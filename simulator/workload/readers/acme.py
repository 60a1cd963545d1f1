"""`trace_seren.csv` and `trace_kalos.csv` of Acme (InternLM/AcmeTrace, NSDI '24, CC BY 4.0).

Columns: job_id, user, node_num, gpu_num, cpu_num, type, state, submit_time, start_time, end_time,
duration, queue, gpu_time; Kalos adds mem_per_pod_GB, shared_mem_per_pod, fail_time and stop_time.
Kalos's `duration` counts from the submit, Seren's from the start: the run is end_time - start_time.
There is no tenant and no name: `type` (Pretrain, SFT, Evaluation, ...) stands for the name.
"""

from __future__ import annotations

from pathlib import Path

from simulator.workload.delimited import Columns, Sheet
from simulator.workload.readers.runs import read_slurm
from simulator.workload.table import Raw

REQUIRED = ("job_id", "user", "gpu_num", "type", "state", "submit_time", "start_time", "end_time")
OPTIONAL = ("node_num", "cpu_num", "mem_per_pod_GB")
NAMES = {
    "job_name": "type",
    "gpus": "gpu_num",
    "cpus": "cpu_num",
    "mem_gib": "mem_per_pod_GB",
    "submit_s": "submit_time",
    "duration_s": "end_time",
    "queue_s": "start_time",
}


def read_raw(file: Path) -> Raw:
    """Read a cluster's jobs. Times have a zone (+08:00 in Seren, +00:00 in Kalos)."""
    return read_slurm(file, REQUIRED, OPTIONAL, NAMES, _type_and_memory)


def _type_and_memory(sheet: Sheet) -> Columns:
    return {
        "job_name": sheet.text("type"),
        "mem_gib": sheet.number("mem_per_pod_GB") * sheet.number("node_num"),
    }
