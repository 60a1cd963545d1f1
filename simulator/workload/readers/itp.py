"""Raw traces of Microsoft ITP (microsoft/elasticflow-traces, ASPLOS '23, MIT).

One CSV per cluster with job_id, submission_time, duration, num_gpu; the files made for ElasticFlow
have more columns, all invented, which are ignored. A folder is all its clusters; each is a tenant
by the name of its file, because clusters share no GPUs. No user, name, state or real wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from simulator.workload.delimited import Columns, Sheet, gather_blocks, read_blocks
from simulator.workload.errors import TraceError
from simulator.workload.readers.runs import drop_left_out
from simulator.workload.table import NEVER_STARTED, Raw

REQUIRED = ("job_id", "submission_time", "duration", "num_gpu")
NAMES = {"submit_s": "submission_time", "duration_s": "duration", "gpus": "num_gpu"}


def read_raw(path: Path) -> Sequence[Raw]:
    """Read one `Raw` per cluster: of a file, or of each *.csv and *.csv.gz of a folder."""
    files = files_in(path) if path.is_dir() else [path]
    if not files:
        raise TraceError(path, "holds no *.csv")
    return [_cluster(file) for file in files]


def files_in(folder: Path) -> list[Path]:
    """Return the tables of a folder, by name."""
    return sorted([*folder.glob("*.csv"), *folder.glob("*.csv.gz")])


def _cluster(file: Path) -> Raw:
    tenant = file.name.partition(".")[0]

    def columns(sheet: Sheet) -> Columns:
        duration_s = sheet.number("duration")
        state = np.where(np.isnan(duration_s), NEVER_STARTED, "")
        return {
            "job_id": sheet.text("job_id"),
            "tenant": pa.array([tenant] * len(sheet)),
            "submit_s": sheet.number("submission_time"),
            "duration_s": duration_s,
            "gpus": sheet.number("num_gpu"),
            "state": pa.array(state.tolist()),
        }

    return drop_left_out(file, gather_blocks(read_blocks(file, REQUIRED), columns), NAMES)
