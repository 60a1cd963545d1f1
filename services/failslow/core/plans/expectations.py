"""The plan that is due next for each slow gang: stated whenever its faults or plans have changed.

The time follows from the loss so far and the present slowdown, so it holds until the next change,
which states it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from services.failslow.core.mitigation.mitigation_state import Episode
from services.failslow.core.mitigation.policy import lost_share
from services.failslow.core.plans import measuring
from services.failslow.core.plans.adapting import LEVEL, RULE, adaptation_due_s
from services.failslow.core.plans.planning import ledger_ms, makes_plans
from services.failslow.core.state import FailSlowState, GangState, Unclear
from shared.contracts.mitigation import (
    EXPECTED_FROM,
    DeclinedLevel,
    DeclinedReason,
    LevelName,
    MitigationExpected,
)
from shared.ledger.decider import Decision


@dataclass(frozen=True, slots=True)
class NextPlan:
    """A plan that falls due at `due_s`, cluster s; None: within hours none does."""

    level: LevelName = "nothing"
    due_s: float | None = None
    due_lost_s: float = 0.0
    cost_s: float = 0.0
    rule: str = ""


def state_expectations(state: FailSlowState, now: int) -> Iterator[Decision]:
    """State the next plan of each gang of which it may have changed.

    Earlier releases cannot read it: a pool that was not upgraded has none stated.
    """
    if state.pool is None or state.pool.release < EXPECTED_FROM or not makes_plans(state):
        return
    now_s = state.cluster_s(now)
    for job_id, episode in list(state.mitigation.episodes.items()):
        if not episode.is_stated:
            yield Decision(of_workers(state, job_id, episode, now_s))
    for job_id, gang in list(state.gangs.items()):
        unclear = gang.unclear
        if unclear is None or unclear.is_stated or job_id in state.mitigation.episodes:
            continue
        yield Decision(of_job(state, job_id, gang, unclear, now_s))


def of_workers(
    state: FailSlowState, job_id: str, episode: Episode, now_s: float
) -> MitigationExpected:
    """Return the next plan against slow workers."""
    plan, due = state.mitigation.due_plan(job_id), NextPlan()
    if plan is not None and episode.due_s is not None:
        lost_s = plan.accumulated_loss_s
        due = NextPlan(plan.level, episode.due_s, lost_s, plan.cost_s, plan.rule)
    declined = state.mitigation.declined(job_id)
    lost_s = episode.loss_at(now_s).lost_s
    return _event(state, job_id, episode.tenant, episode.attempt, due, lost_s, declined)


def of_job(
    state: FailSlowState, job_id: str, gang: GangState, unclear: Unclear, now_s: float
) -> MitigationExpected:
    """Return the next plan for a job that is slow as a whole."""
    share = lost_share(unclear.slowdown)
    adapting_s, measuring_s = adaptation_due_s(state, gang), measuring.due_s(state, job_id)
    due, declined = NextPlan(), list[tuple[LevelName, DeclinedReason]]()
    if measuring_s is not None and measuring.can_validate(state):
        lost_s = max(0.0, measuring_s - unclear.since_s) * share
        cost_s = measuring.cost_s(state.mitigation)
        due = NextPlan("validate", measuring_s, lost_s, cost_s, measuring.RULE)
    else:
        declined.append(("validate", "planned" if unclear.is_planned else "not_offered"))
    if adapting_s is not None:
        cost_s = state.mitigation.costs.of(LEVEL.name).cost_s
        due = NextPlan(LEVEL.name, adapting_s, cost_s, cost_s, RULE)
    else:
        declined.append((LEVEL.name, "planned" if unclear.is_advised else "not_offered"))
    lost_s = max(0.0, now_s - unclear.since_s) * share
    return _event(state, job_id, gang.tenant, gang.attempt, due, lost_s, declined)


def _event(
    state: FailSlowState,
    job_id: str,
    tenant: str,
    attempt: int,
    due: NextPlan,
    lost_s: float,
    declined: list[tuple[LevelName, DeclinedReason]],
) -> MitigationExpected:
    return MitigationExpected(
        job_id=job_id,
        tenant=tenant,
        attempt=attempt,
        level=due.level,
        due_at=None if due.due_s is None else ledger_ms(state, due.due_s),
        lost_s=lost_s,
        due_lost_s=due.due_lost_s,
        cost_s=due.cost_s,
        rule=due.rule,
        declined=tuple(DeclinedLevel(level=level, reason=why) for level, why in declined),
    )
