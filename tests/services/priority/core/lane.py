"""Inputs of priority from admission and placement, and its rankings of them."""

from __future__ import annotations

from typing import Any, TypeVar

from services.priority.core.decide import Priority
from services.priority.core.state import PriorityState
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobPreempted, JobRequeued, JobStarted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.placement import Allocation, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import QueueRanked
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, run
from tests.shared.ledger_events import node_joined

PRIORITY = Priority()
E = TypeVar("E", bound=Event)


def pool(policy: str = "fcfs", **more: Any) -> PoolConfigured:
    fields = {"pool": "p", "partition": 0, "base_policy": policy, "publish_predictions": True}
    return PoolConfigured.model_validate(fields | more)


def admitted(
    job: str,
    *,
    tenant: str = "red",
    at: int = AT,
    gpus: float = 1,
    cls: str = "normal",
    **spec: Any,
) -> Input:
    """`spec` are further fields of the job's specification."""
    fields = {"name": job, "gang": Gang(gpus_per_worker=gpus), "priority_class": cls, **spec}
    event = JobAdmitted(
        job_id=job, tenant=tenant, submitted_at=at, spec=JobSpec.model_validate(fields)
    )
    return an_input(event, "admission", at=at)


def placed(job: str, *, tenant: str = "red", gpus: int = 1, at: int = AT) -> Input:
    allocation = Allocation(rank=0, node_id="n", gpus=tuple(range(gpus)))
    event = JobPlaced(
        job_id=job, tenant=tenant, attempt=1, allocations=(allocation,), waited_ms=0, policy="x"
    )
    return from_placement(event, at)


def started(job: str, at: int = AT) -> Input:
    return from_placement(JobStarted(job_id=job, tenant="red", attempt=1), at)


def running(job: str, *, tenant: str = "red", gpus: int = 1, at: int = AT) -> list[Input]:
    """Place and start a job at that moment."""
    return [placed(job, tenant=tenant, gpus=gpus, at=at), started(job, at)]


def stopped(job: str, at: int = AT) -> list[Input]:
    """Preempt and requeue a job."""
    preempted = JobPreempted(job_id=job, tenant="red", attempt=1, reason="outranked")
    requeued = JobRequeued(job_id=job, tenant="red", attempt=2, reason="preempted")
    return [from_placement(preempted, at), from_placement(requeued, at)]


def succeeded(job: str, at: int = AT) -> Input:
    return from_placement(JobSucceeded(job_id=job, tenant="red", attempt=1), at)


def node(name: str, gpus: int) -> Input:
    return from_placement(node_joined(name, incarnation="1", gpus=gpus, cpus=1, mem_gib=1))


def from_placement(event: Event, at: int = AT) -> Input:
    return an_input(event, "placement", at=at)


def only(events: list[Event], kind: type[E]) -> E:
    """The one event of that kind."""
    (match,) = [event for event in events if isinstance(event, kind)]
    return match


def ranked(state: PriorityState, inputs: list[Input], now: int = AT) -> QueueRanked:
    return only(run(PRIORITY, state, inputs, now), QueueRanked)


def order(state: PriorityState, inputs: list[Input], now: int = AT) -> list[str]:
    return [job.job_id for job in ranked(state, inputs, now).ranked]
