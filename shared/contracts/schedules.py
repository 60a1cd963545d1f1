"""The GPUs that a scheduler of types and numbers allots to the jobs of a pool."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Event, JobId, Model, event

SHADOW_MOST = 64
"""Jobs that the comparison of a shadow names, at most."""
ProposalFailure = Literal["", "late", "died"]
"""`late`: the scheduler made no proposal in its time; `died`: its process ended before it did."""


class AllottedNode(Model):
    """The workers of a job on one node."""

    node_id: str = Field(description="the node")
    workers: int = Field(ge=1, description="workers of the gang on it")


class AllottedGpus(Model):
    """The GPUs of a job until the next proposal, of one type."""

    job_id: JobId = Field(description="the job")
    gpu_type: str = Field(description="type of its GPUs")
    workers: int = Field(ge=1, description="workers of its gang")
    nodes: tuple[AllottedNode, ...] = Field(
        (), description="nodes that the scheduler chose; empty: the pool chooses them"
    )


@event
class GpusAllotted(Event):
    """The scheduler of a pool said which jobs run until its next proposal, and on what.

    A job with GPUs that is not named stops, one with another number, type or nodes changes, and a
    waiting one that is named starts as soon as its GPUs are free. A proposal that breaks a rule
    changes nothing: it is refused whole, and the ranked queue decides until the next one.
    """

    TYPE: ClassVar[str] = "gpus.allotted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    scheduler: str = Field(description="name of the scheduler")
    number: int = Field(ge=1, description="proposals so far, this one included")
    allotted: tuple[AllottedGpus, ...] = Field((), description="jobs with GPUs, by id")
    until: int = Field(description="ms, when the next proposal is due")
    memory: str = Field("{}", description="what the scheduler keeps for its next proposal, JSON")
    refused: str = Field(
        "", description="the scheduler and the rule that its proposal broke; empty: none"
    )
    kept: ProposalFailure = Field(
        "", description="why the allotments of the last proposal are kept; empty: these are new"
    )


@event
class ProposalOpened(Event):
    """The scheduler of a pool decides anew, in a process of its own.

    Its proposal is a `GpusAllotted`. Rounds wait for it for a moment, and then go on by the last
    one. Without a proposal at `until` the last one is kept.
    """

    TYPE: ClassVar[str] = "proposal.opened.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    scheduler: str = Field(description="name of the scheduler")
    until: int = Field(description="ms, after which no proposal is waited for")


class ShadowComparison(Model):
    """The proposal of a shadow beside what is in effect on the same view, type and number of GPUs.

    Starts, stops and changes are against what runs in the view.
    """

    agreement: float = Field(
        1.0,
        ge=0,
        le=1,
        description="GPUs that both give a job on the same type, as a share of what either gives",
    )
    gpus: int = Field(0, ge=0, description="GPUs that jobs have in effect")
    shadow_gpus: int = Field(0, ge=0, description="GPUs that the shadow gives")
    starts: int = Field(0, ge=0, description="waiting jobs that the shadow gives GPUs")
    stops: int = Field(0, ge=0, description="running jobs that it gives none")
    changes: int = Field(0, ge=0, description="running jobs that it gives another type or number")
    others: tuple[JobId, ...] = Field(
        (), max_length=SHADOW_MOST, description="jobs to which it gives others, the first by id"
    )


@event
class ShadowProposed(Event):
    """A scheduler proposed on a view of the pool without effect."""

    TYPE: ClassVar[str] = "shadow.proposed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    scheduler: str = Field(description="name of the shadow")
    beside: str = Field("", description="scheduler in effect on the view; empty: the ranked queue")
    number: int = Field(ge=1, description="proposals of shadows so far, this one included")
    until: int = Field(description="ms, before which none follows")
    compared: ShadowComparison = Field(
        default_factory=ShadowComparison, description="what it would do, beside what is done"
    )
    memory: str = Field("{}", description="what the scheduler keeps for its next proposal, JSON")
    refused: str = Field(
        "", description="the scheduler and the rule that its proposal broke; empty: none"
    )
    failed: ProposalFailure = Field("", description="why there is no proposal; empty: there is one")
    propose_ms: float = Field(0.0, ge=0, description="wall ms in the scheduler's process")
