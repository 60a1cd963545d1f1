"""The proposal of a pool's scheduler, as placement gets it from the scheduler's process."""

from __future__ import annotations

from pydantic import Field

from shared.contracts.base import JobId, Local, Model
from shared.contracts.schedules import ProposalFailure, ShadowComparison


class ProposedNode(Model):
    """GPUs of a job on one node."""

    node_id: str = Field(description="the node")
    gpus: int = Field(ge=1, description="GPUs of the gang on it")


class ProposedGpus(Model):
    """GPUs of a job, of one type."""

    job_id: JobId = Field(description="the job")
    gpu_type: str = Field(description="type of its GPUs")
    gpus: int = Field(ge=1, description="GPUs of its gang")
    nodes: tuple[ProposedNode, ...] = Field(
        (), description="its nodes, where the scheduler decides them; empty: the pool does"
    )


class ProposalReady(Local):
    """The proposal that was opened, checked against the rules of the view that it is for."""

    at_seq: int = Field(description="seq of the record with the ProposalOpened that it answers")
    proposed: tuple[ProposedGpus, ...] = Field((), description="jobs with GPUs, by id")
    memory: str = Field("{}", description="what the scheduler keeps for its next proposal, JSON")
    refused: str = Field(
        "", description="the scheduler and the rule that its proposal broke; empty: none"
    )
    failed: ProposalFailure = Field("", description="why there is no proposal; empty: there is one")
    wake_s: float | None = Field(
        None,
        description="cluster s, when the scheduler has to decide again though nothing happened; "
        "absent: not before its round ends",
    )
    propose_ms: float = Field(0.0, ge=0, description="wall ms in the scheduler's process")


class ShadowReady(Local):
    """The proposal of a shadow, compared with what is in effect on its view."""

    scheduler: str = Field(description="name of the shadow")
    beside: str = Field("", description="scheduler in effect on the view; empty: the ranked queue")
    viewed_at: int = Field(description="ms of the view")
    compared: ShadowComparison = Field(
        default_factory=ShadowComparison, description="what it would do, beside what is done"
    )
    memory: str = Field("{}", description="what the scheduler keeps for its next proposal, JSON")
    refused: str = Field(
        "", description="the scheduler and the rule that its proposal broke; empty: none"
    )
    failed: ProposalFailure = Field("", description="why there is no proposal; empty: there is one")
    propose_ms: float = Field(0.0, ge=0, description="wall ms in the scheduler's process")
