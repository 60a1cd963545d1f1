"""The policies that a pool's past can be simulated under, and why others are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import get_args

from services.priority.core.learned.model import uses_history
from services.priority.core.policies.base_policies import POLICIES
from shared.contracts.pools import LOG_SCORE_MARGIN, BasePolicy, PoolConfigured
from shared.schedulers.registry import scheduler_classes
from simulator.engine.candidate import PRESENT, TrialCandidate, policy_of
from simulator.engine.models import load_models
from simulator.recorded.slice import RecordedSlice

FAMILY = "berth"
"""The learned policies shipped with Berth."""
BY_RANK: tuple[BasePolicy, ...] = ("gittins", "las", "srsf")
"""Policies that are tried with preemption by rank too: their ranks differ by factors or by queues,
so that a margin keeps jobs of nearly the same rank from stopping each other."""
RUN_TIMES = frozenset({"sjf", "saf", "f1", "wfp3", "unicep", "srtf", "srsf"})
"""Policies of the run times that the pool's setting `runtime` names."""
ROUNDS = "in rounds"
AS_FCFS = "orders as fcfs does, as every policy keeps classes apart"
ONE_TENANT = "orders as fcfs does: all jobs are of one tenant"
USERS_TIMES = "ranks by the history of similar jobs, and the pool's `runtime` is `user`"
TRUE_TIMES = "would rank by true run times, which no job of a real pool declares"


@dataclass(slots=True)
class League:
    """Candidates of the pool's own settings, the present ones first; schedulers of rounds by name;
    and the reason for each policy that is left out.
    """

    candidates: list[TrialCandidate]
    schedulers: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def league_of(part: RecordedSlice) -> League:
    """Return every policy that the jobs have data for."""
    pool = part.scenario.pool
    present = policy_of(pool)
    league = League([TrialCandidate(PRESENT, present)])
    for candidate, reason in _policies(part):
        if reason:
            league.left_out[candidate.name] = reason
        elif present | candidate.settings != present:
            league.candidates.append(candidate)
    for name in scheduler_classes():
        if reason := unmet_need(part, name):
            league.left_out[f"{name}, {ROUNDS}"] = reason
        else:
            league.schedulers.append(name)
    return league


def policy_settings(
    pool: PoolConfigured, policy: str, changes: dict[str, object]
) -> dict[str, object]:
    """Return the settings of a policy, `learned:NAME` or a base policy, with further changes.

    Where stops by rank are on and no margin is named it is that of the policy's scores.
    """
    family, _, learned = policy.partition(":")
    settings: dict[str, object] = (
        {"learned": learned}
        if family == "learned" and learned
        else {"base_policy": policy, "learned": None}
    )
    settings |= changes
    if settings.get("preemption", pool.preemption) == "ranked" and "preempt_margin" not in changes:
        settings["preempt_margin"] = margin_of(settings)
    return settings


def margin_of(settings: dict[str, object]) -> float:
    """Return the margin of stops by rank: scores of learned and ratio policies are logarithms."""
    own = POLICIES.get(str(settings.get("base_policy")))
    return LOG_SCORE_MARGIN if settings.get("learned") or (own and own.ratio) else 0.0


def _policies(part: RecordedSlice) -> Iterator[tuple[TrialCandidate, str]]:
    """Yield every policy of the queue with the reason to leave it out, "" for none."""
    pool = part.scenario.pool
    by_class: dict[str, object] = {"preemption": "class", "preempt_margin": 0.0}
    ranked: dict[str, object] = {"preemption": "ranked"}
    learned = f"learned:{FAMILY}"
    for name in (*BY_RANK[:1], learned, *BY_RANK[1:]):
        settings = policy_settings(pool, name, ranked)
        shown = "learned" if name == learned else name
        yield (
            TrialCandidate(f"{shown}, preemption by rank", settings),
            _reason(part, name, settings),
        )
    settings = policy_settings(pool, learned, by_class)
    yield TrialCandidate("learned", settings), _reason(part, learned, settings)
    for name in get_args(BasePolicy):
        settings = policy_settings(pool, name, by_class)
        yield TrialCandidate(name, settings), _reason(part, name, settings)


def _reason(part: RecordedSlice, policy: str, settings: dict[str, object]) -> str:
    """Return why the jobs have no data for a policy, "" if they have."""
    pool = part.scenario.pool
    if policy == "priority_class":
        return AS_FCFS
    if policy == "fair_share" and len({job.tenant for job in part.jobs}) < 2:
        return ONE_TENANT
    if policy in ("gittins", "qssf") and not uses_history(pool):
        return USERS_TIMES
    uses_runtime = policy in RUN_TIMES or policy.startswith("learned:")
    if uses_runtime and pool.runtime == "oracle" and not _declare_run_times(part):
        return TRUE_TIMES
    try:
        load_models(pool.model_copy(update=settings))
    except ValueError as error:
        return str(error)
    return ""


def _declare_run_times(part: RecordedSlice) -> bool:
    """Return whether jobs declare the run time that virtual nodes simulate."""
    return all(job.spec.simulated and job.spec.simulated.duration_s for job in part.jobs)


def unmet_need(part: RecordedSlice, scheduler: str) -> str:
    """Return why a scheduler of rounds cannot run the recorded jobs, "" if it can."""
    own = scheduler_classes()[scheduler]
    known = {"rates"} if has_rates(part) else set[str]()
    if missing := [need for need in own.needs if need not in known]:
        return f"needs {' and '.join(missing)}, which the ledger does not have of these jobs"
    if "gpus" in own.decides:
        return "decides numbers of GPUs, and no job was measured with others than it requested"
    if any(job.gpus <= 0 or job.gpus != int(job.gpus) for job in part.scenario.jobs):
        return "rounds place whole GPUs, and jobs have parts of one or none"
    past, (low, high) = part.past, part.time_ms
    if past.nodes.changed_within(max(low, min(job.arrived_at for job in part.jobs)), high):
        return "rounds have nodes that stay, and some came, left or were cordoned"
    return ""


def has_rates(part: RecordedSlice) -> bool:
    """Return whether each job's speed on each type of the pool is known.

    With one type it is: a job does a second of its work in a second.
    """
    types = {node.gpu_type for node in part.scenario.nodes.values() if node.gpus}
    if len(types) == 1:
        return True
    return all(types <= (job.spec.gpu_speeds or {}).keys() for job in part.jobs)


def under(part: RecordedSlice, settings: dict[str, object]) -> RecordedSlice:
    """Return the past with other settings of its pool."""
    pool = PoolConfigured.model_validate(part.scenario.pool.model_dump() | settings)
    return replace(part, scenario=replace(part.scenario, pool=pool))
