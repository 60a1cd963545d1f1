"""Reports that a gang stands ready, and the port at which its workers meet."""

from __future__ import annotations

from services.executor.core.engines.contract import EngineJob
from services.executor.core.engines.gangs import EngineGang
from shared.contracts.reports import Report, WorkerReady

FIRST_PORT, PORTS = 20_000, 10_000
"""Below the ports that Linux gives to clients."""


def ready_reports(gang: EngineGang, job: EngineJob) -> list[Report]:
    """Return that each worker waits for its start; a port of the gang's own follows from its job.

    No port of a node can be reserved: jobs of the engine that run at a time differ in theirs.
    """
    port = port_of(job.ref)
    return [
        WorkerReady(
            allocation_id=worker.allocation_id,
            job_id=worker.launch.job_id,
            master_port=port if worker.launch.rank == 0 else None,
        )
        for worker in gang.workers
    ]


def port_of(ref: str) -> int:
    """Return the port of a job of the engine, which follows from its id."""
    return FIRST_PORT + int("".join(filter(str.isdecimal, ref)) or 0) % PORTS
