"""The nodes of a pool as fail-slow counts them, and the breaker of automatic mitigation."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, event


def most_out_of_use(share: float, nodes: int) -> int:
    """Return how many of a pool's nodes a share is: one of several at least, unless it is 0."""
    return max(int(share * nodes), 1) if nodes > 1 and share else 0


@event
class NodesNoted(Event):
    """Fail-slow noted which nodes the pool has, and which of them are cordoned."""

    TYPE: ClassVar[str] = "nodes.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    joined: tuple[str, ...] = Field((), description="nodes that are new")
    lost: tuple[str, ...] = Field((), description="nodes that are lost")
    cordoned: tuple[str, ...] = Field((), description="nodes that are cordoned now")
    uncordoned: tuple[str, ...] = Field((), description="nodes that are schedulable again")
    leaving: tuple[str, ...] = Field((), description="those cordoned until they join anew")


@event
class BreakerChanged(Event):
    """Automatic mitigation stops, as too many nodes would be cordoned, or goes on."""

    TYPE: ClassVar[str] = "mitigation.breaker.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    is_open: bool = Field(description="open: plans wait for an operator")
    plan_id: str = Field("", description="the first plan that waits")
    nodes: int = Field(ge=0, description="nodes of the pool")
    out_of_use: int = Field(ge=0, description="nodes that are cordoned, or will be by a plan")
    most: int = Field(ge=0, description="nodes that may be")
