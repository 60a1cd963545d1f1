"""The nodes of one GPU model, from the node list of Alibaba's spot trace."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simulator.workload.errors import TraceError, first_line
from simulator.workload.locate import locate

TRACE = "alibaba_spot_2026_nodes"
MODEL = "A100-SXM4-80GB"
NODES = 287
"""Nodes of the published simulation: 2,296 A100."""
COLUMNS = ("gpu_model", "gpu_capacity_num")


def read_node_gpus(trace: str = TRACE, model: str = MODEL, most: int = NODES) -> NDArray[np.int64]:
    """Return the GPUs of the first nodes of a model. Raises TraceError for an unusable file."""
    path = locate(trace)
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(path, f"cannot be read ({first_line(error)})") from error
    for name in COLUMNS:
        if name not in table.column_names:
            raise TraceError(path, "is required but missing", column=name)
    models, gpus = (table[name].to_pylist() for name in COLUMNS)
    own = [number for name, number in zip(models, gpus, strict=True) if name == model]
    if not own:
        raise TraceError(path, f"has no node of {model}", column="gpu_model")
    return np.array(own[:most], np.int64)
