"""Estimates of starts, and stops that were put off."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class StartInterval(TypedDict):
    """The interval in which a waiting job will start, with 80 %; times in ms."""

    at: int
    """When it was estimated."""
    of: str
    """`job`: its own; `queue`: of the last waiting job of its size."""
    p10_at: int
    """With 10 % it starts before that."""
    p50_at: int
    """As likely as not it starts before that."""
    p90_at: int
    """With 90 % it starts before that."""
    coverage: float | None
    """Share of the pool's intervals that held; null: not known yet."""
    samples: int
    """Intervals that were judged."""
    pool: NotRequired[str]
    """Another pool of the job that starts it first; absent: the one in which it waits."""


class OtherPool(TypedDict):
    """Another pool of a waiting job, to which it goes once no job waits there and it has room."""

    pool: str
    rule: str | None
    """Why it cannot run there now; null: it can."""
    waiting: int
    """Jobs that wait there."""
    start: StartInterval | None
    """That of the tenant's last job there with as many GPUs; null where none waits."""


class StopDeferral(TypedDict):
    """A stop of a running job for another one that was put off."""

    at: int
    until: int
    """When it may be stopped at the earliest."""
    rule: str
    """Rule that protects it until then, a code in snake_case."""
    victims: int
    """Jobs that would be stopped for the other one."""
    by_job_id: NotRequired[str]
    """The other job; for operators."""
