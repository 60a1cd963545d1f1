"""Lists of real nodes, for a pool that replays a trace.

Detected by their columns, as CSV (plain or gzipped) or parquet:
`openb_node_list_*.csv` (Alibaba 2023: sn, cpu_milli, memory_mib, gpu, model),
`pai_machine_spec.csv` (Alibaba PAI 2020, no header: machine, gpu_type, cap_cpu, cap_mem, cap_gpu),
and `node_info_df.csv` (Alibaba spot 2026: gpu_model, gpu_capacity_num, cpu_num, node_name).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simulator.workload.delimited import Floats, Sheet, read_blocks, read_header
from simulator.workload.errors import TraceError, first_line
from simulator.workload.locate import locate
from simulator.workload.names import name_of, slug

MAX_GPUS = 64
PAI_SPEC = "pai_machine_spec"
PAI_HEADER = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
CPU_ONLY = "cpu"


@dataclass(frozen=True, slots=True)
class WorkloadNode:
    """A node; GPUs in devices, 0 for none; None where the list has no value."""

    name: str
    gpus: int
    gpu_type: str | None
    cpus: float | None
    mem_gib: float | None


@dataclass(frozen=True, slots=True)
class _Form:
    """Columns of a list, and how many of their units are one core or one GiB."""

    name: str
    gpus: str
    gpu_type: str
    cpus: str
    mem: str | None
    per_cpu: float = 1.0
    per_gib: float = 1.0

    @property
    def columns(self) -> tuple[str, ...]:
        columns = (self.name, self.gpus, self.gpu_type, self.cpus, self.mem)
        return tuple(column for column in columns if column is not None)


_FORMS = (
    _Form("sn", "gpu", "model", "cpu_milli", "memory_mib", 1000, 1024),
    _Form("node", "gpu", "model", "cpu_milli", "memory_mib", 1000, 1024),
    _Form("machine", "cap_gpu", "gpu_type", "cap_cpu", "cap_mem"),
    _Form("machine", "cap_gpu", "gpu_type", "cap_cpu", "cap_mem_gib"),
    _Form("node_name", "gpu_capacity_num", "gpu_model", "cpu_num", None),
)


def read_nodes(trace: str) -> list[WorkloadNode]:
    """Read the nodes of a list, by path or by name under the shared traces, in the file's order.

    Raises TraceError with file, row and column.
    """
    path = locate(trace)
    return [node for sheet in _sheets(path) for node in _nodes(sheet, _form(path, sheet))]


def gpus_by_type(nodes: list[WorkloadNode]) -> Mapping[str, int]:
    """Return the GPUs of each type, by name; nodes without GPUs are not counted."""
    gpus: dict[str, int] = {}
    for node in nodes:
        if node.gpus:
            kind = node.gpu_type or "unknown"
            gpus[kind] = gpus.get(kind, 0) + node.gpus
    return dict(sorted(gpus.items()))


def _sheets(path: Path) -> list[Sheet]:
    if path.suffix == ".parquet":
        return [_parquet(path)]
    if path.name.startswith(PAI_SPEC):
        return list(read_blocks(path, PAI_HEADER, names=PAI_HEADER))
    form = _form_of(path, read_header(path))
    return list(read_blocks(path, form.columns))


def _parquet(path: Path) -> Sheet:
    try:
        table = pq.read_table(path, partitioning=None)
        texts = {name: pc.cast(table[name], pa.string()) for name in table.column_names}
    except (pa.ArrowException, OSError) as error:
        raise TraceError(path, f"is not a readable parquet file ({first_line(error)})") from error
    return Sheet(path, pa.table(texts))


def _form(path: Path, sheet: Sheet) -> _Form:
    return _form_of(path, sheet.table.column_names)


def _form_of(path: Path, names: list[str]) -> _Form:
    for form in _FORMS:
        if set(form.columns) <= set(names):
            return form
    raise TraceError(path, "is no known list of nodes")


def _nodes(sheet: Sheet, form: _Form) -> list[WorkloadNode]:
    names = sheet.text(form.name).to_pylist()
    gpus = _checked(sheet, form.gpus)
    odd = np.flatnonzero(np.isnan(gpus) | (gpus % 1 != 0) | (gpus > MAX_GPUS))
    if odd.size:
        rule = f"must be a whole number up to {MAX_GPUS}, is {gpus[odd[0]]:g}"
        raise TraceError(sheet.file, rule, column=form.gpus, row=sheet.first_row + int(odd[0]))
    cpus = _checked(sheet, form.cpus) / form.per_cpu
    mem = _checked(sheet, form.mem) / form.per_gib if form.mem else np.full(len(sheet), np.nan)
    kinds = sheet.text(form.gpu_type).to_pylist()
    return [
        WorkloadNode(name_of(name or f"node-{row}"), int(count), _kind(kind, count), *sizes)
        for row, (name, count, kind, *sizes) in enumerate(
            zip(names, gpus, kinds, _optional(cpus), _optional(mem), strict=True), sheet.first_row
        )
    ]


def _checked(sheet: Sheet, column: str) -> Floats:
    values = sheet.number(column)
    odd = np.flatnonzero(np.isinf(values) | (values < 0))
    if odd.size:
        rule = f"must be finite and not negative, is {values[odd[0]]:g}"
        raise TraceError(sheet.file, rule, column=column, row=sheet.first_row + int(odd[0]))
    return values


def _kind(text: str | None, gpus: float) -> str | None:
    name = slug(text or "")
    return name if gpus and name and name != CPU_ONLY else None


def _optional(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
