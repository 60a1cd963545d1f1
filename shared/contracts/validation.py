"""Validation of nodes: a job measures one worker per named node, and pairs of them in rounds.

Its workers report as trainings do: the number of an iteration names what was measured, its seconds
are how long the same work took there. So agents of earlier releases serve it too.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import Field

from shared.contracts.base import Event, JobId, Local, Model, event
from shared.contracts.faults import Cause, FaultyPart

PROCESSOR: Final = 0
"""Iteration that is the computation on one processor."""
MEMORY: Final = 1
"""Iteration that is the copy of a piece of memory."""
FIRST_GPU: Final = 16
"""Iteration of the computation on the first GPU of the worker; the others follow."""
MOST_GPUS: Final = 64
FIRST_LINK: Final = 1024
"""Iteration of the transfer to the worker of rank 0; those to other ranks follow."""
LEAST_NODES, MOST_NODES = 2, 64
LONGEST_S: Final = 3600.0
MEASURING_S: Final = 120.0
"""Wall s that a validation by fail-slow runs at most."""
FAILSLOW: Final = "failslow"
"""Sender of its commands."""
VALIDATIONS_FROM = 1
"""First release that reads them: until `berth upgrade finish` none is admitted."""


class ValidationMeasured(Local):
    """Measurements of the workers of a validation that has ended."""

    job_id: JobId = Field(description="the job that measured")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    traceparent: str = Field("", description="trace of the placement that started it")
    node_ids: tuple[str, ...] = Field(description="nodes in rank order")
    times_s: tuple[dict[int, float], ...] = Field(
        description="by rank, s by number of the iteration, without the wait for a processor"
    )
    waits_s: tuple[dict[int, float], ...] = Field(
        (), description="by rank, s of that wait, as far as it is known"
    )


class MeasuredPart(Model):
    """One measured part: seconds beside the median of the same work on the other nodes."""

    part: str = Field(description="`processor`, `memory`, `gpu N` or `link to NODE`")
    node_id: str = Field(description="the node; of a link the sender")
    seconds: float = Field(
        ge=0, description="s that the work took, without the wait for a processor"
    )
    ratio: float = Field(ge=0, description="multiple of the median of the same part elsewhere")


@event
class NodesValidated(Event):
    """A validation measured nodes and the links between them, and this is what deviates.

    With fewer than three measurements of one kind no part can be named: the cause is unknown.
    """

    TYPE: ClassVar[str] = "nodes.validated.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job that measured")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    node_ids: tuple[str, ...] = Field(description="nodes in rank order")
    silent_node_ids: tuple[str, ...] = Field((), description="those of which nothing was measured")
    rounds: int = Field(ge=0, description="rounds in which pairs exchanged data")
    cause: Cause = Field("unknown", description="compute or communication; unknown stays unknown")
    part: FaultyPart = Field("", description="kind of the worst part; empty: none deviates")
    suspect_node_ids: tuple[str, ...] = Field((), description="nodes of the worst part")
    confidence: float = Field(0.0, ge=0, le=1, description="0 where the cause is unknown")
    evidence: tuple[str, ...] = Field((), description="sentences with figures, worst first")
    measured: tuple[MeasuredPart, ...] = Field((), description="all that was measured")
