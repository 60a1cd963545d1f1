"""Reports of an agent in the form of the ledger's inputs."""

from __future__ import annotations

from services.executor.core.agents.state import AgentPool
from shared.contracts.agents import (
    ExitedReport,
    Incarnation,
    LeavingReport,
    NodeReport,
    ReadyReport,
    RefusedReport,
    RegistrationReport,
    StoppedReport,
    StuckReport,
    TermsAppliedReport,
)
from shared.contracts.failures import Failure
from shared.contracts.reports import (
    NodeLeaving,
    NodeRegistered,
    NodeTermsReported,
    Report,
    WorkerExited,
    WorkerReady,
    WorkerRefused,
    WorkerStopped,
    WorkerStuck,
)

NO_FAILURE = Failure(reason="")


class ForeignWorker(Exception):
    """A node reported on a worker of another node; the text names it."""


class NotFolded(Exception):
    """A report is about a worker that this fold has not reached yet; the text names it."""


def restate(
    state: AgentPool, node_id: str, incarnation: Incarnation, report: NodeReport
) -> Report | None:
    """Return the report for placement, or None where it has no meaning there.

    None is for workers that the ledger has released, and for those that were placed on another
    incarnation: another machine may have reported under the node's name since.
    Raises ForeignWorker and NotFolded.
    """
    match report:
        case RegistrationReport():
            fields = report.model_dump(exclude={"kind", "incarnation"})
            return NodeRegistered(
                **fields,
                node_id=node_id,
                backend="agent",
                incarnation=incarnation.uuid,
                generation=incarnation.generation,
            )
        case LeavingReport():
            return NodeLeaving(node_id=node_id, incarnation=incarnation.uuid)
        case TermsAppliedReport(terms_id=terms_id):
            return NodeTermsReported(
                node_id=node_id, incarnation=incarnation.uuid, terms_id=terms_id
            )
        case _:
            job_id = _job_of(state, node_id, incarnation, report.allocation_id)
            return _of_worker(report, job_id) if job_id else None


def _of_worker(
    report: ReadyReport | RefusedReport | ExitedReport | StoppedReport | StuckReport, job_id: str
) -> Report:
    name = report.allocation_id
    match report:
        case ReadyReport(master_port=port):
            return WorkerReady(allocation_id=name, job_id=job_id, master_port=port)
        case RefusedReport(failure=failure):
            return WorkerRefused(allocation_id=name, job_id=job_id, **failure.model_dump())
        case ExitedReport():
            failure = report.failure or NO_FAILURE
            return WorkerExited(
                allocation_id=name,
                job_id=job_id,
                exit_code=report.exit_code,
                ran_ms=report.ran_ms,
                **failure.model_dump(),
            )
        case StoppedReport(exit_code=exit_code):
            return WorkerStopped(allocation_id=name, job_id=job_id, exit_code=exit_code)
        case StuckReport(detail=detail):
            return WorkerStuck(allocation_id=name, job_id=job_id, detail=detail)


def _job_of(state: AgentPool, node_id: str, incarnation: Incarnation, allocation_id: str) -> str:
    """Return the job of a worker of the incarnation; "" for a released one, or of another one."""
    worker = state.workers.get(allocation_id)
    if worker is not None:
        if worker.node_id != node_id:
            raise ForeignWorker(allocation_id)
        return worker.launch.job_id if worker.incarnation == incarnation.uuid else ""
    partition, _, rest = allocation_id.partition("/")
    seq = rest.partition("/")[0]
    if partition != str(state.partition) or not seq.isdecimal():
        raise ForeignWorker(allocation_id)
    if int(seq) > state.through.seq:
        raise NotFolded(allocation_id)
    return ""
