"""The actions for each gang: a pure function of the ledger's fold and of one look at the engine.

Nothing is derived from what this process did before, so it may die at any point: the next look
shows what its actions came to. `Memory` holds times and refusals alone, whose loss delays an end or
makes a reason less precise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from services.executor.core.agents.state import AgentPool
from services.executor.core.engines.contract import (
    NO_PROGRESS,
    Action,
    EngineJob,
    EnginePhase,
    EngineState,
    Forbid,
    Forget,
    GangProgress,
    Kill,
    NoteLost,
    Signal,
    Start,
    Submit,
)
from services.executor.core.engines.ends import (
    ended_reports,
    held_reports,
    stopped_reports,
    stuck_reports,
)
from services.executor.core.engines.gangs import EngineGang, Identity, gangs_of
from services.executor.core.engines.memory import Memory
from services.executor.core.engines.readiness import ready_reports
from services.executor.core.engines.unrunnable import unrunnable
from shared.contracts.failures import Failure
from shared.contracts.reports import Report

KILL_EVERY_S = 5.0
FORGET_AFTER_S = 5.0
STUCK_AFTER_S = 60.0
"""A job that is still there so long after it was first killed is reported as stuck."""
START_LATE_S = 120.0
"""A gang that was started in the ledger so long ago has begun, or the engine was away: a backup of
the engine's memory is older."""
LOOKS_APART_S = 15.0
"""Nodes answered all the time between two looks that are not further apart."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the engine, and what it is compared with."""

    state: AgentPool
    installation: str
    pool: str
    observation: EngineState
    memory: Memory
    now_s: float
    ledger_ms: int
    """Time of the ledger, as it is folded now."""
    pending_s: float
    """Longest time for which the engine may let a gang wait on nodes that are free to Berth."""
    refusal_of: Callable[[EngineGang], Failure | None]
    """Why the engine cannot run a gang, beside what none can."""
    acting: frozenset[str] = frozenset()
    """Identities of gangs on which actions of earlier looks were still under way when this one
    began: it may show them half done."""


@dataclass(slots=True)
class Decided:
    """Actions and reports that follow from a look."""

    actions: list[Action] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


def reconcile(look: Look) -> Decided:
    """Return actions and reports for all gangs, and the end of work that the ledger released.

    A gang that was placed after the look began has no progress in it yet, and waits for the next,
    as does one that is acted on.
    """
    decided = Decided()
    gangs = gangs_of(look.state, look.installation, look.pool)
    for gang in gangs.values():
        if gang.identity in look.observation.progress and gang.identity not in look.acting:
            _decide(look, gang, decided)
    _end_leftovers(look, gangs, decided)
    look.memory.prune(gangs, look.observation)
    return decided


def _decide(look: Look, gang: EngineGang, decided: Decided) -> None:
    jobs = look.observation.jobs_of(gang.identity)
    progress = look.observation.progress.get(gang.identity, NO_PROGRESS)
    live = [job for job in jobs if job.phase is not EnginePhase.ENDED]
    if _has_lost_its_start(look, gang, live, progress):
        decided.actions.append(NoteLost(gang))
    elif live:
        job = next((job for job in live if job.ref == progress.ready), live[0])
        for double in live:
            if double is not job:
                _kill(look, double, decided)
        _of_live(look, gang, job, progress, decided)
    elif progress.is_begun:
        _of_begun(look, gang, jobs, progress, decided)
    else:
        _of_new(look, gang, jobs, progress, decided)


def _has_lost_its_start(
    look: Look, gang: EngineGang, live: list[EngineJob], progress: GangProgress
) -> bool:
    """Return whether a gang may have begun that the engine shows as never started.

    One of which the engine still shows what runs on a node goes on.
    """
    if not (look.observation.forgets_starts and gang.is_started):
        return False
    if progress.is_begun or progress.is_forbidden or any(job.nodes for job in live):
        return False
    return look.ledger_ms - gang.started_ms >= START_LATE_S * 1000


def _of_live(
    look: Look, gang: EngineGang, job: EngineJob, progress: GangProgress, decided: Decided
) -> None:
    """Refuse a job that does not start, end one that is given up, start one that stands ready."""
    _refuse_waiting(look, gang, job, progress)
    if is_over(look, gang) or progress.is_forbidden or job.has_failed:
        _end(look, gang, job, progress, decided)
    elif job.is_partial:
        decided.actions.append(Submit(gang))
    elif job.phase is EnginePhase.RUNNING and progress.ready == job.ref and _may_start(progress):
        if gang.is_started:
            decided.actions.append(Start(gang, job.ref))
        else:
            decided.reports += ready_reports(gang, job)


def _may_start(progress: GangProgress) -> bool:
    return progress.needs_start or not progress.is_begun


def _refuse_waiting(look: Look, gang: EngineGang, job: EngineJob, progress: GangProgress) -> None:
    """Note a refusal of what waits too long, cannot start at all, or was started by the engine."""
    memory = look.memory
    if job.phase is EnginePhase.RUNNING and job.is_refused:
        detail = f"{job.owner} does not begin: {job.waits_for}"
        memory.refusals.setdefault(gang.identity, Failure(reason="engine_waits", detail=detail))
    if job.phase is not EnginePhase.PENDING:
        return
    waited_s = look.now_s - memory.waits_since_s.setdefault(job.ref, look.now_s)
    if progress.is_begun or job.restarts:
        detail = f"{job.owner}: the engine queued it again by itself"
        memory.refusals.setdefault(gang.identity, Failure(reason="step_lost", detail=detail))
    elif job.is_refused or waited_s >= look.pending_s:
        detail = f"{job.owner} waits for {waited_s:.0f} s: {job.waits_for or 'no reason given'}"
        memory.refusals.setdefault(gang.identity, Failure(reason="engine_waits", detail=detail))


def is_over(look: Look, gang: EngineGang) -> bool:
    """Return whether no program of the gang may start or go on."""
    if gang.is_stopped or gang.identity in look.memory.refusals:
        return True
    nodes = look.state.nodes
    return any(
        (node := nodes.get(worker.node_id)) is None
        or node.lost is not None
        or node.incarnation != worker.incarnation
        for worker in gang.workers
    )


def _end(
    look: Look, gang: EngineGang, job: EngineJob, progress: GangProgress, decided: Decided
) -> None:
    """End a job: programs get their grace, what has no program ends at once."""
    memory = look.memory
    if not progress.is_begun:
        if not progress.is_forbidden:
            # Only once this is durable is it known that no program runs.
            decided.actions.append(Forbid(gang.identity))
        # A program may have removed the link that shows its begin: no later look can trust it.
        forbidden_s = memory.forbidden_s.setdefault(job.ref, look.now_s)
        if progress.is_forbidden or (gang.is_started and forbidden_s < look.now_s):
            _kill(look, job, decided)
        return
    if job.phase is EnginePhase.RUNNING:
        signalled_s = memory.signalled_s.get(job.ref)
        if signalled_s is None:
            memory.signalled_s[job.ref] = look.now_s
            decided.actions.append(Signal(job.ref, gang.launch.grace_s))
            return
        if look.now_s - signalled_s < gang.launch.grace_s:
            return
    _kill(look, job, decided, has_program=job.phase is EnginePhase.RUNNING)
    if look.now_s - memory.first_killed_s.get(job.ref, look.now_s) >= STUCK_AFTER_S:
        decided.reports += stuck_reports(gang, job)


def _kill(look: Look, job: EngineJob, decided: Decided, *, has_program: bool = False) -> None:
    """Kill a job, and again now and then, as a whole: the engine may have lost the order."""
    memory = look.memory
    is_first = memory.first_killed_s.setdefault(job.ref, look.now_s) == look.now_s
    if look.now_s - memory.killed_s.get(job.ref, look.now_s - KILL_EVERY_S) >= KILL_EVERY_S:
        memory.killed_s[job.ref] = look.now_s
        decided.actions.append(Kill(job.ref, has_program and is_first))


def _of_begun(
    look: Look,
    gang: EngineGang,
    jobs: tuple[EngineJob, ...],
    progress: GangProgress,
    decided: Decided,
) -> None:
    """Report the ends of programs, once the engine has freed their GPUs.

    Where it gave up a node or does not know the job any more, that is not before it hears from each
    node of the gang: programs run on there until its daemon is back and ends them.
    """
    last = jobs[-1] if jobs else None
    if (last is None or last.lost_node) and not _is_settled(look, gang, progress):
        since_s = look.memory.lost_s.setdefault(gang.identity, look.now_s)
        if progress.settle_s and look.now_s - since_s >= STUCK_AFTER_S:
            decided.reports += held_reports(gang, frozenset(gang.nodes) - progress.cleared)
        return
    refusal = look.memory.refusals.get(gang.identity)
    decided.reports += ended_reports(gang, last, progress, refusal)


def _is_settled(look: Look, gang: EngineGang, progress: GangProgress) -> bool:
    """Return whether each node of a lost gang has shown its end there, or answers, and did so for
    as long as that end may take; a restart of the executor waits anew.
    """
    nodes, answers_s = look.observation.nodes, look.memory.answers_s
    rest = [name for name in gang.nodes if name not in progress.cleared]
    if not all((node := nodes.get(name)) is not None and node.responds for name in rest):
        answers_s.pop(gang.identity, None)
        return False
    if not (rest and progress.settle_s):
        return True
    first_s, last_s = answers_s.get(gang.identity, (look.now_s, look.now_s))
    if look.now_s - last_s > LOOKS_APART_S:
        first_s = look.now_s
    answers_s[gang.identity] = first_s, look.now_s
    return look.now_s - first_s >= progress.settle_s + gang.launch.grace_s


def _of_new(
    look: Look,
    gang: EngineGang,
    jobs: tuple[EngineJob, ...],
    progress: GangProgress,
    decided: Decided,
) -> None:
    """Submit a gang of which the engine has no job, or report why it does not run."""
    memory = look.memory
    if failure := unrunnable(gang) or look.refusal_of(gang):
        memory.refusals.setdefault(gang.identity, failure)
    if jobs and not progress.is_forbidden:
        failure = jobs[-1].failure
        if failure.reason:
            memory.refusals.setdefault(gang.identity, failure)
    if progress.is_forbidden:
        decided.reports += stopped_reports(gang, memory.refusals.get(gang.identity))
    elif jobs or is_over(look, gang):
        decided.actions.append(Forbid(gang.identity))
    else:
        decided.actions.append(Submit(gang))


def _end_leftovers(look: Look, gangs: dict[str, EngineGang], decided: Decided) -> None:
    """End jobs of this pool that the ledger has released; those ahead of the fold are not known."""
    for job in look.observation.jobs:
        identity = Identity.parse(job.identity)
        if identity is None or job.identity in gangs or job.identity in look.acting:
            continue
        is_own = identity.is_of(look.installation, look.pool)
        if not is_own or look.state.may_lie_ahead(identity.place):
            continue
        if job.phase is not EnginePhase.ENDED:
            _kill(look, job, decided)
        elif job.is_kept:
            _forget(look, job, decided)


def _forget(look: Look, job: EngineJob, decided: Decided) -> None:
    """Let the engine forget a job a while after its release, in which its output is read."""
    released_s = look.memory.released_s.setdefault(job.ref, look.now_s)
    if look.now_s - released_s >= FORGET_AFTER_S:
        decided.actions.append(Forget(job.ref))
