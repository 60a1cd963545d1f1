"""Conversion between arrays and rows of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from simulator.workload.columns import UNKNOWN, Codes, Columns, Floats
from simulator.workload.names import UNKNOWN_USER, assign_tenant, text_of
from simulator.workload.rows import WorkloadJob

_OUTCOMES = {1: True, 0: False, UNKNOWN: None}


def jobs_of(columns: Columns, count: int | None, tenants: Sequence[str]) -> list[WorkloadJob]:
    """Return the first `count` jobs (None: all); one without a tenant gets one of `tenants`.

    It is chosen by the user where there is one, so that a user stays within one tenant; else by
    key.
    """
    rows_kept = slice(count)
    rows = zip(
        columns.job_keys[rows_kept],
        _words(columns.tenant[rows_kept], columns.tenants),
        _words(columns.user[rows_kept], columns.users),
        _words(columns.name[rows_kept], columns.names),
        columns.submit_s[rows_kept].tolist(),
        columns.duration_s[rows_kept].tolist(),
        columns.workers[rows_kept].tolist(),
        columns.gpus_per_worker[rows_kept].tolist(),
        _words(columns.gpu_type[rows_kept], columns.gpu_types),
        columns.cpus[rows_kept].tolist(),
        columns.mem_gib[rows_kept].tolist(),
        columns.outcome[rows_kept].tolist(),
        _optional(columns.walltime_s[rows_kept]),
        _words(columns.qos[rows_kept], columns.qos_classes),
        _optional(columns.queue_s[rows_kept]),
        _optional(columns.checkpoint_interval_s[rows_kept]),
        strict=True,
    )
    return [
        WorkloadJob(
            key,
            tenant or assign_tenant(user or key, tenants),
            user or UNKNOWN_USER,
            name or text_of(key),
            submit_s,
            duration_s,
            workers,
            gpus_per_worker,
            gpu_type,
            cpus,
            mem_gib,
            _OUTCOMES[outcome],
            walltime_s,
            qos,
            queue_s,
            checkpoint_interval_s,
        )
        for (
            key,
            tenant,
            user,
            name,
            submit_s,
            duration_s,
            workers,
            gpus_per_worker,
            gpu_type,
            cpus,
            mem_gib,
            outcome,
            walltime_s,
            qos,
            queue_s,
            checkpoint_interval_s,
        ) in rows
    ]


def columns_from(jobs: Sequence[WorkloadJob], never_started: int = 0) -> Columns:
    """Return the arrays of jobs that are ordered by (submit, key)."""
    tenant, tenants = _codes(job.tenant for job in jobs)
    user, users = _codes(None if job.user == UNKNOWN_USER else job.user for job in jobs)
    name, names = _codes(job.name for job in jobs)
    gpu_type, gpu_types = _codes(job.gpu_type for job in jobs)
    qos, qos_classes = _codes(job.qos for job in jobs)
    return Columns(
        submit_s=_floats(job.submit_s for job in jobs),
        duration_s=_floats(job.duration_s for job in jobs),
        gpus=_floats(job.gpus for job in jobs),
        workers=np.array([job.workers for job in jobs], np.int32),
        gpus_per_worker=_floats(job.gpus_per_worker for job in jobs),
        cpus=_floats(job.cpus for job in jobs),
        mem_gib=_floats(job.mem_gib for job in jobs),
        walltime_s=_floats(job.walltime_s for job in jobs),
        queue_s=_floats(job.queue_s for job in jobs),
        checkpoint_interval_s=_floats(job.checkpoint_interval_s for job in jobs),
        tenant=tenant,
        user=user,
        name=name,
        gpu_type=gpu_type,
        qos=qos,
        outcome=np.array([_code(job.succeeded) for job in jobs], np.int8),
        job_keys=tuple(job.job_key for job in jobs),
        tenants=tenants,
        users=users,
        names=names,
        gpu_types=gpu_types,
        qos_classes=qos_classes,
        never_started=never_started,
    )


def _words(codes: Codes, vocabulary: Sequence[str]) -> list[str | None]:
    # The last entry is what -1 picks.
    words = [*vocabulary, None]
    return [words[code] for code in codes.tolist()]


def _optional(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _floats(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _codes(words: Iterable[str | None]) -> tuple[Codes, tuple[str, ...]]:
    code_of: dict[str, int] = {}
    codes = [UNKNOWN if word is None else code_of.setdefault(word, len(code_of)) for word in words]
    return np.array(codes, np.int32), tuple(code_of)


def _code(succeeded: bool | None) -> int:
    return UNKNOWN if succeeded is None else int(succeeded)
