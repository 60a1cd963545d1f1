"""Reports of an agent in the form of the ledger's inputs."""

from __future__ import annotations

from services.executor.core.agents.state import AgentPool, AgentWorker
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
    state: AgentPool,
    node_id: str,
    incarnation: Incarnation,
    report: NodeReport,
    *,
    is_complete: bool = False,
) -> Report | None:
    """Return the report for placement, or None where it has no meaning there.

    None is for workers that the ledger has released, for those that were placed on another
    incarnation (another machine may have reported under the node's name since), and for those of
    another ledger: a node may still hold workers of an installation that it left.
    `is_complete`: the ledger was read to its end after the request came.
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
            name = report.allocation_id
            worker = state.workers.get(name)
            if worker is None:
                if not is_complete and state.may_lie_ahead(name):
                    raise NotFolded(name)
                return None
            job_id = job_of(worker, node_id, incarnation)
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


def job_of(worker: AgentWorker, node_id: str, incarnation: Incarnation) -> str:
    """Return the job of a worker of the incarnation; "" for a worker of another one."""
    if worker.node_id != node_id:
        raise ForeignWorker(worker.allocation_id)
    return worker.launch.job_id if worker.incarnation == incarnation.uuid else ""
