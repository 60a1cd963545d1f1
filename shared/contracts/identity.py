"""Ids that several services derive from the same inputs, independently of each other."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID, uuid5

BERTH = UUID("6f5bd1d1-4a1c-5a53-9d0b-3f1d3c8f2c51")
"""UUID namespace of all ids that Berth derives from content."""


def derive_job_id(tenant: str, pool: str, idempotency_key: str) -> str:
    """Return the job id of a submission: a repeated submission has the same id.

    The pool is part of the id, because lanes share no state: two of them could not agree on one.
    """
    return str(uuid5(_lane(tenant, pool), idempotency_key))


def derive_command_id(topic: str, partition: int, offset: int) -> str:
    """Return the command id of a record of an input topic, equal for every delivery of it."""
    return str(uuid5(BERTH, f"{topic}/{partition}/{offset}"))


@lru_cache(maxsize=4096)
def _lane(tenant: str, pool: str) -> UUID:
    return uuid5(uuid5(BERTH, tenant), pool)
