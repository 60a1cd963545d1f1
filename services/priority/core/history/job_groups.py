"""The groups of similar jobs whose run times history counts together."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared.contracts.job_names import UNKNOWN_USER, name_pattern

KindOfJob: TypeAlias = tuple[str, str, str, float, str]
"""Tenant, user, name, GPUs, digest of the command."""
HistoryGroup: TypeAlias = tuple[str, ...]


@lru_cache(maxsize=4096)
def groups(
    tenant: str, user: str, name: str, gpus: float, command: str = ""
) -> tuple[HistoryGroup | None, ...]:
    """Return one group per level, None where the job lacks a field that the level needs."""
    size = f"{gpus:g}"
    by_tenant, by_user = bool(tenant), bool(user) and user != UNKNOWN_USER
    return (
        ("all",),
        ("gpus", size),
        ("tenant", tenant) if by_tenant else None,
        ("tenant-gpus", tenant, size) if by_tenant else None,
        ("recent", tenant, size),
        ("user-gpus", tenant, user, size) if by_user else None,
        ("user-recent", tenant, user) if by_user else None,
        ("name", tenant, user, name_pattern(name)) if name else None,
        ("command", tenant, user, command) if command else None,
    )


def owner_of(group: HistoryGroup) -> str:
    """Return the tenant whose jobs the group counts; empty: it counts those of all."""
    return "" if group[0] in ("all", "gpus") else group[1]


KINDS_MOST = 4096


class GroupRows(dict[KindOfJob, NDArray[np.intp]]):
    """The rows of all groups of a kind of job once it was learnt: a group never changes its row.

    A cache beside the state, which stays out of snapshots.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return (GroupRows, ())

    def keep(self, kind: KindOfJob, rows: list[int]) -> NDArray[np.intp]:
        """Keep the rows of a kind of job; beyond the limit all others are forgotten."""
        if len(self) >= KINDS_MOST:
            self.clear()
        kept = self[kind] = np.array(rows, np.intp)
        return kept
