"""Ids that several parties must derive alike, without asking each other."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID, uuid5

BERTH = UUID("6f5bd1d1-4a1c-5a53-9d0b-3f1d3c8f2c51")
"""Namespace of everything that Berth names by content."""


def derive_job_id(tenant: str, pool: str, idempotency_key: str) -> str:
    """The same wish has the same id, so nobody keeps a store of wishes.

    The pool is part of it: lanes share nothing, so two of them could not settle one id.
    """
    return str(uuid5(_lane(tenant, pool), idempotency_key))


def derive_command_id(topic: str, partition: int, offset: int) -> str:
    """A record of an input topic is one command, however often it is delivered."""
    return str(uuid5(BERTH, f"{topic}/{partition}/{offset}"))


@lru_cache(maxsize=4096)
def _lane(tenant: str, pool: str) -> UUID:
    return uuid5(uuid5(BERTH, tenant), pool)
