"""A workload as the kernel reads it: integer ms, whole GPUs, history groups as codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.priority.core.history.distributions import LEVELS
from shared.contracts.job_names import name_pattern
from simulator.workload.columns import Columns

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
FAILED = 0
"""Outcome of a job whose program failed, see `Columns`."""


@dataclass(frozen=True, slots=True)
class Work:
    """`n` jobs by submission. A worker with a part of a GPU takes a whole one here."""

    submit_ms: Ints
    duration_ms: Ints
    walltime_ms: Ints
    """Run time given to policies whose source is not history: here the true one (oracle)."""
    workers: Ints
    gpus: Ints
    """Per worker."""
    shape: Ints
    """Code of (workers, gpus)."""
    costlier: NDArray[np.bool_]
    """[S, S] whether shape b needs at least as much as shape a."""
    failed: NDArray[np.bool_]
    """Whether the program fails at its end."""
    groups: Ints
    """[n, LEVELS] codes of `history.groups`, -1 where a job has none."""
    group_count: int
    tenant: Ints
    tie: Ints
    """Order of the job ids, which decides between equals."""
    checkpoint_s: Floats
    """Work between checkpoints, 0 for none; NaN where the trace does not say."""

    def __len__(self) -> int:
        return len(self.submit_ms)

    @property
    def gang(self) -> Ints:
        return self.workers * self.gpus

    def part(self, chosen: slice | NDArray[np.bool_]) -> Work:
        """Return some of the jobs; shapes and groups keep their codes."""
        own = (
            "submit_ms",
            "duration_ms",
            "walltime_ms",
            "workers",
            "gpus",
            "shape",
            "failed",
            "groups",
            "tenant",
            "tie",
            "checkpoint_s",
        )
        return replace(self, **{name: getattr(self, name)[chosen] for name in own})


def build_work(columns: Columns) -> Work:
    """Return the jobs that request GPUs."""
    chosen = columns.gpus > 0
    workers = columns.workers[chosen].astype(np.int64)
    gpus = np.maximum(1, np.ceil(columns.gpus_per_worker[chosen])).astype(np.int64)
    shapes, shape = np.unique(np.stack((workers, gpus), axis=1), axis=0, return_inverse=True)
    duration_ms = np.maximum(1, np.rint(columns.duration_s[chosen] * 1000)).astype(np.int64)
    groups, count = encode_groups(columns, chosen)
    return Work(
        submit_ms=np.rint(columns.submit_s[chosen] * 1000).astype(np.int64),
        duration_ms=duration_ms,
        walltime_ms=duration_ms.copy(),
        workers=workers,
        gpus=gpus,
        shape=shape.reshape(-1).astype(np.int64),
        costlier=np.asarray((shapes[:, None, :] <= shapes[None, :, :]).all(axis=2), np.bool_),
        failed=columns.outcome[chosen] == FAILED,
        groups=groups,
        group_count=count,
        tenant=columns.tenant[chosen].astype(np.int64),
        tie=np.arange(int(chosen.sum()), dtype=np.int64),
        checkpoint_s=columns.checkpoint_interval_s[chosen],
    )


def encode_groups(columns: Columns, chosen: NDArray[np.bool_]) -> tuple[Ints, int]:
    """Return the groups of `history.groups` as level_codes [n, LEVELS], and their number."""
    tenant, user = columns.tenant[chosen], columns.user[chosen]
    names = np.array([*(name_pattern(name) for name in columns.names), ""])
    name = np.unique(names, return_inverse=True)[1][columns.name[chosen]]
    size = np.unique(columns.gpus[chosen], return_inverse=True)[1]
    nothing = np.zeros_like(tenant)
    known_tenant, known_user = tenant >= 0, user >= 0
    known_name = columns.name[chosen] >= 0
    always = np.ones(len(tenant), np.bool_)
    levels: tuple[tuple[NDArray[np.bool_], tuple[NDArray[Any], ...]], ...] = (
        (always, (nothing,)),
        (always, (size,)),
        (known_tenant, (tenant,)),
        (known_tenant, (tenant, size)),
        (always, (tenant, size)),
        (known_user, (tenant, user, size)),
        (known_user, (tenant, user)),
        (known_name, (tenant, user, name)),
        (~always, (nothing,)),  # commands: no workload has any
    )
    assert len(levels) == LEVELS
    groups = np.full((len(tenant), LEVELS), -1, np.int64)
    count = 0
    for level, (known, parts) in enumerate(levels):
        if known.any():
            rows = np.stack(parts, axis=1)[known]
            level_codes = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
            groups[known, level] = level_codes + count
            count += int(level_codes.max()) + 1
    return groups, count
