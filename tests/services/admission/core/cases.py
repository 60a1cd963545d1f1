"""A pool with two nodes of 8 GPUs and tenants acme and beta, and shorthands for its inputs."""

from __future__ import annotations

from itertools import count
from typing import Any

from services.admission.core.decide import Admission
from services.admission.core.evolve_pool import NODE_SETTLE_MS
from services.admission.core.state import AdmissionState
from shared.contracts.admission import QuotaChanged
from shared.contracts.attempts import JobCancelled, JobFailed, JobSucceeded
from shared.contracts.base import Event, Model
from shared.contracts.bookkeeping import CapacityNoted, NodeShape, TenantNoted
from shared.contracts.job_commands import CancelJob, SetQuota, SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.nodes import NodeLost
from shared.contracts.pools import PoolConfigured
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, given, run, wake
from tests.shared.ledger_events import node_joined

ADMISSION = Admission()
NOW = AT + NODE_SETTLE_MS
POOL = PoolConfigured(partition=0, pool="main")
ACME = TenantNoted(tenant="acme")
_ids = count(1)


def shape(name: str, gpus: int = 8, **more: Any) -> NodeShape:
    fields: dict[str, Any] = {"gpu_type": "h100", "cpus": 64, "mem_gib": 512} | more
    return NodeShape(node_id=name, gpus=gpus, **fields)


NODES = CapacityNoted(pool="main", joined=(shape("n1"), shape("n2")))


def pool(*history: Event) -> AdmissionState:
    return given(ADMISSION, POOL, ACME, TenantNoted(tenant="beta"), NODES, *history)


def quota(guaranteed: float, borrow: float | None = 0, spot: float | None = None) -> QuotaChanged:
    return QuotaChanged(
        tenant="acme", guaranteed_gpus=guaranteed, borrow_gpus=borrow, spot_gpus=spot
    )


def submit(job_id: str, tenant: str = "acme", size: int = 1, **spec: Any) -> Input:
    gang = {"workers": spec.pop("workers", 1), "gpus_per_worker": spec.pop("gpus", 1.0)}
    submission = SubmitJob(
        job_id=job_id,
        tenant=tenant,
        pool=spec.pop("pool", "main"),
        idempotency_key=job_id,
        array_size=size,
        spec=JobSpec.model_validate({"name": job_id, "gang": gang} | spec),
    )
    return command(submission, f"submit-{job_id}-{next(_ids)}")


def command(message: Model, id_: str = "") -> Input:
    return an_input(message, id=id_ or f"c{next(_ids)}", traceparent="00-aa-bb-01")


def cancel(job_id: str, tenant: str | None = "acme", id_: str = "") -> Input:
    return command(CancelJob(job_id=job_id, tenant=tenant), id_)


def set_quota(guaranteed: float, borrow: float | None = 0, spot: float | None = None) -> Input:
    return command(
        SetQuota(tenant="acme", guaranteed_gpus=guaranteed, borrow_gpus=borrow, spot_gpus=spot)
    )


def placed(event: Event, at: int = NOW) -> Input:
    return an_input(event, "placement", at=at)


def joined(name: str, gpus: int = 8) -> Input:
    return placed(node_joined(name, gpu_type="h100", gpus=gpus, cpus=64, mem_gib=512))


def lost(name: str, reason: Any = "left") -> Input:
    return placed(NodeLost(node_id=name, incarnation="i", reason=reason))


def when(state: AdmissionState, *inputs: Input, now: int = NOW) -> list[Event]:
    return run(ADMISSION, state, inputs, now)


def summarize(events: list[Event]) -> list[str]:
    """Return each event in short: `job.deferred acme-1 quota`."""
    return [" ".join(filter(None, (e.TYPE[:-3], e.subject, _reason(e)))) for e in events]


def _reason(event: Event) -> str:
    return str(getattr(event, "reason", "") or "")


def summarize_jobs(events: list[Event]) -> list[str]:
    """Return the summaries of the events of jobs alone."""
    return [summary for summary in summarize(events) if summary.startswith("job.")]


def succeeded(job_id: str) -> JobSucceeded:
    return JobSucceeded(job_id=job_id, tenant="acme", attempt=1)


def failed(job_id: str) -> JobFailed:
    return JobFailed(job_id=job_id, tenant="acme", attempt=1, reason="exit_code")


def cancelled(job_id: str) -> JobCancelled:
    return JobCancelled(job_id=job_id, tenant="acme")


def drain(state: AdmissionState, now: int = NOW) -> list[Event]:
    """Run all wakes that are due, one after another as the shell does, and return their events."""
    events: list[Event] = []
    while woken := wake(ADMISSION, state, now):
        events += woken
    due = ADMISSION.next_wake(state)
    assert due is None or due > now
    return events
