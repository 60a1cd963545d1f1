"""Workers and nodes of Alibaba's cluster-trace-gpu-v2023, and the variants of its demand.

The variants follow the published ones: as many workers with GPUs, of which those with a part of one
request a certain share of all GPUs; or the trace, with workers of several GPUs added until these
request a certain share.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from shared.contracts.gang_needs import MIB, NodeKind, Shape, gpus_and_milli
from simulator.workload.errors import TraceError, first_line
from simulator.workload.formats import READERS, detect_format
from simulator.workload.locate import locate
from simulator.workload.rows import EITHER
from simulator.workload.table import gpu_type_of, join_parts, numbers

NODE_COLUMNS = ("cpu_milli", "memory_mib", "gpu", "model")


def read_workers(trace: str) -> list[Shape]:
    """Return the needs of all jobs of the trace, also of those that it never saw running.

    Raises TraceError for what is no trace.
    """
    path = locate(trace)
    table = join_parts(READERS[detect_format(path)](path))
    types = [text or "" for text in table["gpu_type"].to_pylist()]
    columns = (numbers(table, name) for name in ("gpus", "cpus", "mem_gib"))
    rows = zip(*(np.nan_to_num(column).tolist() for column in columns), types, strict=True)
    return [shape_of(*row) for row in rows]


def shape_of(gpus: float, cpus: float, mem_gib: float, types: str) -> Shape:
    """Return the needs of a worker; a part of a GPU is one below 1."""
    whole, milli = gpus_and_milli(gpus)
    return Shape(
        gpus=whole,
        milli=milli,
        cpu_milli=round(cpus * 1000),
        mem_mib=round(mem_gib * MIB),
        types=tuple(sorted(filter(None, gpu_type_of(types).split(EITHER)))),
        selector=(),
        min_workers=1,
        max_workers=1,
    )


def read_kinds(trace: str) -> list[NodeKind]:
    """Return the nodes in the order of the file, parquet or CSV. Raises TraceError."""
    path = locate(trace)
    try:
        table = pq.read_table(path) if path.suffix == ".parquet" else pc.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(path, f"cannot be read ({first_line(error)})") from error
    columns = [_column(path, table, name) for name in NODE_COLUMNS]
    return [
        NodeKind(gpu_type_of(model or ""), int(gpus), int(cpu_milli), int(mem_mib), ())
        for cpu_milli, mem_mib, gpus, model in zip(*columns, strict=True)
    ]


def _column(path: Path, table: pa.Table, name: str) -> list[object]:
    if name not in table.column_names:
        raise TraceError(path, "is required but missing", column=name)
    values: list[object] = table[name].to_pylist()
    return values


def with_share(shapes: Sequence[Shape], percent: int, seed: int = 0) -> list[Shape]:
    """Return as many workers, drawn so that parts of GPUs are so many percent of all GPUs."""
    parts = [shape for shape in shapes if shape.gpus and shape.is_share]
    whole = [shape for shape in shapes if shape.gpus and not shape.is_share]
    others = [shape for shape in shapes if not shape.gpus]
    part_mean, whole_mean = (_milli(group) / len(group) for group in (parts, whole))
    number = len(parts) + len(whole)
    requested = percent * whole_mean
    part_number = round(number * requested / (requested + (100 - percent) * part_mean))
    draws = np.random.default_rng(seed)
    return [
        *others,
        *_drawn(parts, part_number, draws),
        *_drawn(whole, number - part_number, draws),
    ]


def with_multi(shapes: Sequence[Shape], percent: int, seed: int = 0) -> list[Shape]:
    """Return the workers, and more of several GPUs until these are so many percent of all GPUs."""
    multi = [shape for shape in shapes if shape.gpus > 1]
    taken, total, several = list(shapes), _milli(shapes), _milli(multi)
    draws = np.random.default_rng(seed)
    while 100 * several < percent * total:
        shape = multi[int(draws.integers(len(multi)))]
        taken.append(shape)
        total += shape.worker_milli
        several += shape.worker_milli
    return taken


def _drawn(shapes: Sequence[Shape], number: int, draws: np.random.Generator) -> list[Shape]:
    return [shapes[at] for at in draws.integers(0, len(shapes), number)]


def _milli(shapes: Sequence[Shape]) -> int:
    return sum(shape.worker_milli for shape in shapes)
