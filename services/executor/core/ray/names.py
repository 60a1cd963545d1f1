"""Names of Berth's jobs in Ray: one per worker, derived from the identity of its gang.

Ray takes an id of a job once: a gang that is submitted twice, by one executor or by two, is there
once.
"""

from __future__ import annotations

IDENTITY, RANK, WORLD, NODE, GPUS = (
    f"berth.{name}" for name in ("identity", "rank", "world", "node", "gpus")
)
"""Metadata of a job."""
SUPERVISOR = "_ray_internal_job_actor_"
"""Ray runs each job by an actor of this name and the id of the job."""


def ref_of(identity: str) -> str:
    """Return the name of a gang in Ray, which is that of its folder too."""
    return identity.replace("/", "-").replace(":", "~")


def submission_id(ref: str, rank: int) -> str:
    return f"{ref}.{rank}"
