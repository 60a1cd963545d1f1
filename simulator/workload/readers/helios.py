"""`cluster_log.csv` of SenseTime Helios (S-Lab-System-Group/HeliosData, SC '21, CC BY 4.0).

One row per Slurm job of one cluster: job_id, user, vc, gpu_num, cpu_num, node_num, state,
submit_time, start_time, end_time, duration, queue. Times are local, of a zone without summer
time. A VC has GPUs of its own: it is the tenant. `node_num` is what Slurm allocated, not a
request, and is not used.
"""

from __future__ import annotations

from pathlib import Path

from simulator.workload.delimited import Columns, Sheet
from simulator.workload.readers.runs import read_slurm
from simulator.workload.table import Raw

REQUIRED = ("job_id", "user", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time")
OPTIONAL = ("cpu_num", "job_name", "jobname")
NAMES = {
    "tenant": "vc",
    "gpus": "gpu_num",
    "cpus": "cpu_num",
    "submit_s": "submit_time",
    "duration_s": "end_time",
    "queue_s": "start_time",
}


def read_raw(file: Path) -> Raw:
    """Read the jobs. The duration is end_time - start_time, which equals the column `duration`."""
    return read_slurm(file, REQUIRED, OPTIONAL, NAMES, _tenant_and_name)


def _tenant_and_name(sheet: Sheet) -> Columns:
    return {
        "tenant": sheet.text("vc"),
        "job_name": sheet.text("job_name" if sheet.has("job_name") else "jobname"),
    }
