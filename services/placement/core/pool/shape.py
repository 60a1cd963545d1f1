"""Slots and tiers of jobs; the needs of a job are those of the contracts."""

from __future__ import annotations

from typing import NamedTuple

from shared.contracts.gang_needs import GPU, MIB, Shape, WorkerNeeds, limit_workers, shape_of
from shared.contracts.job_spec import PRIORITY_CLASSES, JobSpec

__all__ = [
    "GPU",
    "MIB",
    "SPOT_TIER",
    "TIERS",
    "Shape",
    "Slot",
    "WorkerNeeds",
    "limit_workers",
    "shape_of",
    "tier_of",
]
SPOT_TIER = len(PRIORITY_CLASSES)
TIERS = {name: tier for tier, name in enumerate(PRIORITY_CLASSES)}


class Slot(NamedTuple):
    """The part of a node that one worker gets."""

    node_id: str
    gpus: tuple[int, ...]
    milli: int
    cpu_milli: int
    mem_mib: int


def tier_of(spec: JobSpec) -> int:
    """Return the tier: 0 goes first, and spot jobs come after all others, to which they yield."""
    return TIERS[spec.priority_class] + (SPOT_TIER if spec.spot else 0)
