"""A workload as arrays, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.workload.gangs import shape_gangs
from simulator.workload.names import name_of, text_of
from simulator.workload.rows import UNKNOWN_CPUS, UNKNOWN_MEM_GIB
from simulator.workload.table import OUTCOMES, gpu_type_of, numbers

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

UNKNOWN = -1
"""Code of a value that the trace lacks."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The jobs of a trace by (submit, key); row i of every array is the same job.

    Times in seconds from the trace's zero, GPUs in devices, CPUs and GiB of one worker; a walltime,
    a real wait or an interval between checkpoints that the trace does not say is NaN. `tenant`,
    `user`, `name`, `gpu_type`, `qos` index `tenants`, `users`, `names`, `gpu_types`, `qos_classes`
    (by first appearance; the words are those of `WorkloadJob`); -1 is unknown. A user is identified
    by (tenant, user). `outcome`: 1 completed, 0 failed, -1 neither or unknown. `never_started` jobs
    have no run, so no row.
    """

    submit_s: Floats
    duration_s: Floats
    gpus: Floats
    workers: Codes
    gpus_per_worker: Floats
    cpus: Floats
    mem_gib: Floats
    walltime_s: Floats
    queue_s: Floats
    checkpoint_interval_s: Floats
    tenant: Codes
    user: Codes
    name: Codes
    gpu_type: Codes
    qos: Codes
    outcome: NDArray[np.int8]
    job_keys: tuple[str, ...]
    tenants: tuple[str, ...]
    users: tuple[str, ...]
    names: tuple[str, ...]
    gpu_types: tuple[str, ...]
    qos_classes: tuple[str, ...]
    never_started: int = 0

    def __len__(self) -> int:
        return len(self.submit_s)


def head(columns: Columns, jobs: int | None) -> Columns:
    """Return the first `jobs` rows, under the same codes; all of them for None."""
    if jobs is None:
        return columns
    rows = {
        column.name: getattr(columns, column.name)[:jobs]
        for column in fields(columns)
        if isinstance(getattr(columns, column.name), np.ndarray)
    }
    return replace(columns, **rows, job_keys=columns.job_keys[:jobs])


def columns_of(table: pa.Table, never_started: int) -> Columns:
    """Return the arrays of a table that `table.started_jobs` returned."""
    gangs = shape_gangs(numbers(table, "gpus"), numbers(table, "workers"))
    tenant, tenants = encode_column(table, "tenant", name_of)
    user, users = encode_column(table, "user", name_of)
    name, names = encode_column(table, "job_name", text_of)
    gpu_type, gpu_types = encode_column(table, "gpu_type", gpu_type_of)
    qos, qos_classes = encode_column(table, "qos", str)
    state, states = encode_column(table, "state", str)
    return Columns(
        submit_s=numbers(table, "submit_s"),
        duration_s=numbers(table, "duration_s"),
        gpus=gangs.workers * gangs.gpus_per_worker,
        workers=gangs.workers.astype(np.int32),
        gpus_per_worker=gangs.gpus_per_worker,
        cpus=_share(table, "cpus", gangs.workers, UNKNOWN_CPUS),
        mem_gib=_share(table, "mem_gib", gangs.workers, UNKNOWN_MEM_GIB),
        walltime_s=numbers(table, "walltime_s"),
        queue_s=numbers(table, "queue_s"),
        checkpoint_interval_s=numbers(table, "checkpoint_interval_s"),
        tenant=tenant,
        user=user,
        name=name,
        gpu_type=gpu_type,
        qos=qos,
        outcome=_outcomes(state, states),
        job_keys=tuple(table["job_id"].to_pylist()),
        tenants=tenants,
        users=users,
        names=names,
        gpu_types=gpu_types,
        qos_classes=qos_classes,
        never_started=never_started,
    )


def encode_column(
    table: pa.Table, column: str, to_word: Callable[[str], str]
) -> tuple[Codes, tuple[str, ...]]:
    """Return codes and vocabulary of a text column, by `to_word` of each text; null and "" are
    unknown.

    Two texts with one word share a code.
    """
    encoded = table[column].combine_chunks().dictionary_encode()
    texts: Sequence[str] = encoded.dictionary.to_pylist()
    words = [to_word(text) if text else "" for text in texts]
    codes = {word: code for code, word in enumerate(dict.fromkeys(filter(None, words)))}
    # The last entry is what a null's index, -1, picks.
    code_of = np.array([*(codes.get(word, UNKNOWN) for word in words), UNKNOWN], np.int32)
    indices = encoded.indices.fill_null(UNKNOWN).to_numpy(zero_copy_only=False)
    return code_of[indices], tuple(codes)


def _share(table: pa.Table, column: str, workers: Floats, unknown: float) -> Floats:
    total = numbers(table, column)
    return np.where(np.isnan(total), unknown, total / workers)


def _outcomes(state: Codes, states: Sequence[str]) -> NDArray[np.int8]:
    outcomes = [OUTCOMES.get(text) for text in states]
    codes = [UNKNOWN if outcome is None else int(outcome) for outcome in outcomes]
    return np.array([*codes, UNKNOWN], np.int8)[state]
