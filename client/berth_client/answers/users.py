"""Users of tenants, and the bounds of jobs."""

from __future__ import annotations

from typing_extensions import TypedDict


class JobBounds(TypedDict):
    """Bounds of jobs, of a tenant or of a user within it."""

    pools: list[str]
    """Pools that it may use; empty: all that are open to it."""
    highest_class: str
    max_guaranteed_s: float
    max_grace_s: float
    max_walltime_s: float
    max_job_gpus: float
    max_open_jobs: int
    max_request_bytes: int


class UserBounds(JobBounds):
    """Bounds of jobs of a user."""

    max_gpus: float
    """GPUs of its jobs in one pool at once, beyond which others wait."""


class UserUse(TypedDict):
    """The use of a user by its jobs."""

    open_jobs: int
    """Jobs that wait or run."""
    running: int
    gpus: float
    """GPUs of those that run."""
    gpu_ms: int
    """GPU-milliseconds of attempts that have ended."""


class User(TypedDict):
    """A user of a tenant."""

    id: str
    """`tenant/user`."""
    tenant: str
    user: str
    registered: bool
    """False: keys name it alone, and it has no bounds."""
    bounds: UserBounds
    """Bounds of its jobs within those of its tenant."""
    version: str
    """Version of the bounds, for `if_version`."""
    keys: list[str]
    """Ids of its keys."""
    use: UserUse
