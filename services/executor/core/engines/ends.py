"""Reports of ends, from what the wrappers of the workers noted and what the engine says."""

from __future__ import annotations

import math
from collections.abc import Collection
from signal import Signals

from services.executor.core.agents.state import AgentWorker
from services.executor.core.engines.contract import EngineJob, GangProgress, RankEnd
from services.executor.core.engines.gangs import EngineGang
from shared.contracts.failures import Failure
from shared.contracts.reports import Report, WorkerExited, WorkerRefused, WorkerStopped, WorkerStuck

KILLED = 137
"""Exit code of a worker whose end was not noted: 128 + SIGKILL."""
FORGOTTEN = Failure(reason="step_lost", detail="the engine does not know its job any more")


def stopped_reports(gang: EngineGang, refusal: Failure | None) -> list[Report]:
    """Return that no program of the gang ran or ever will: stopped by placement, or refused."""
    if gang.is_stopped or refusal is None:
        return [WorkerStopped(**_ids(worker)) for worker in gang.workers]
    values = refusal.model_dump()
    return [WorkerRefused(**_ids(worker), **values) for worker in gang.workers]


def stuck_reports(gang: EngineGang, job: EngineJob) -> list[Report]:
    detail = f"{job.owner} was killed and is {job.phase}"
    return [WorkerStuck(**_ids(worker), detail=detail) for worker in gang.workers]


def held_reports(gang: EngineGang, nodes: Collection[str]) -> list[Report]:
    """Return that a lost gang holds its GPUs on those nodes, which have not shown its end."""
    words = "the engine lost its job, and {} has not shown that nothing of it runs there"
    workers = (worker for worker in gang.workers if worker.node_id in nodes)
    return [WorkerStuck(**_ids(one), detail=words.format(one.node_id)) for one in workers]


def ended_reports(
    gang: EngineGang, job: EngineJob | None, progress: GangProgress, refusal: Failure | None
) -> list[Report]:
    """Return the ends of all workers, the first end first: placement blames that one.

    `refusal` is the executor's own reason for the end, None if there is none; `job` is None where
    the engine has forgotten it.
    """
    ends = {worker.launch.rank: progress.ends.get(worker.launch.rank) for worker in gang.workers}
    by_end = sorted(gang.workers, key=lambda worker: _ended_ms(ends[worker.launch.rank]))
    return [_report(gang, worker, ends[worker.launch.rank], job, refusal) for worker in by_end]


def _ended_ms(end: RankEnd | None) -> float:
    return math.inf if end is None else end.ended_ms


def _report(
    gang: EngineGang,
    worker: AgentWorker,
    end: RankEnd | None,
    job: EngineJob | None,
    refusal: Failure | None,
) -> Report:
    if gang.is_stopped:
        code = end.exit_code if end is not None else KILLED
        return WorkerStopped(**_ids(worker), exit_code=code)
    code = end.exit_code if end is not None else (job.exit_code if job else 0) or KILLED
    failure = _failure(end, code, job, refusal)
    return WorkerExited(
        **_ids(worker),
        exit_code=code,
        ran_ms=end.ran_ms if end is not None else 0,
        **failure.model_dump(),
    )


def _failure(
    end: RankEnd | None, code: int, job: EngineJob | None, refusal: Failure | None
) -> Failure:
    """Return why it ended: the wrapper knows best, then the executor, then the engine."""
    if end is not None and end.exit_code == 0:
        return Failure(reason="")
    output = end.output if end is not None else ()
    if end is not None and end.reason:
        permanent = end.reason == "command_missing"
        return Failure(reason=end.reason, detail=end.detail, output=output, permanent=permanent)
    known = refusal or (FORGOTTEN if job is None else job.failure)
    if known.reason:
        return known.model_copy(update={"output": output})
    if code > 128:
        return Failure(reason="signal", detail=_signal_name(code - 128), output=output)
    return Failure(reason="exit_code", output=output)


def _signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def _ids(worker: AgentWorker) -> dict[str, str]:
    return {"allocation_id": worker.allocation_id, "job_id": worker.launch.job_id}
