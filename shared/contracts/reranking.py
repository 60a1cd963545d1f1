"""The order of the queue as changes to the one before."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, JobId, event
from shared.contracts.ranking import RANKED_MOST, RUNNING_MOST, Ranked


@event
class QueueReranked(Event):
    """Priority ranked again by the same policy; what is not named is as in the order before."""

    TYPE: ClassVar[str] = "queue.reranked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    number: int = Field(ge=1, description="rankings since the QueueRanked, this one included")
    ranked: tuple[Ranked, ...] = Field(
        (), max_length=RANKED_MOST, description="waiting jobs that are new or have other values"
    )
    places: tuple[int, ...] = Field(
        (), max_length=RANKED_MOST, description="place of each of them in the new order, from 0"
    )
    left_ranked: tuple[JobId, ...] = Field(
        (), max_length=RANKED_MOST, description="waiting jobs of the order before that it lacks"
    )
    running: tuple[Ranked, ...] = Field(
        (), max_length=RUNNING_MOST, description="jobs with GPUs, new or with other values"
    )
    left_running: tuple[JobId, ...] = Field(
        (), max_length=RUNNING_MOST, description="jobs with GPUs of the order before that it lacks"
    )
    waiting: int = Field(0, ge=0, description="jobs in the queue")
    terms: dict[str, float] = Field(
        default_factory=dict, description="terms that are new or have another value"
    )
    left_terms: tuple[str, ...] = Field((), description="terms of the order before that it lacks")
    context: tuple[float, ...] = Field(
        (), max_length=16, description="pool features of networks; empty: not computed anew"
    )
