"""Jobs whose pipeline links became slow: a schedule that absorbs the delay is advised.

Only the training can change its schedule, so the plan is advice, and its approval the word that
it was done. It costs little, so it is due when the slowdown has cost as much (break even), before
the nodes are measured; where it does not help, the loss goes on and a measurement falls due.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.failslow.core.mitigation.levels import BY_NAME
from services.failslow.core.mitigation.policy import lost_share
from services.failslow.core.state import FailSlowState, GangState, Unclear
from shared.contracts.mitigation import MitigationPlanned
from shared.contracts.parallelism import AdaptedSchedule
from shared.ledger.decider import Decision

LEVEL = BY_NAME["adapt_schedule"]
RULE = "break even: links of the pipeline are slow"


def adaptation_due_s(state: FailSlowState, gang: GangState) -> float | None:
    """Return the cluster time at which the advice is worth it; None: never, or it was given."""
    unclear = gang.unclear
    if unclear is None or unclear.schedule is None or unclear.is_advised:
        return None
    cost_s = state.mitigation.costs.of(LEVEL.name).cost_s
    return unclear.since_s + cost_s / lost_share(unclear.slowdown)


def first_adaptation_s(state: FailSlowState) -> float | None:
    times = (adaptation_due_s(state, gang) for gang in state.gangs.values() if gang.unclear)
    return min((time_s for time_s in times if time_s is not None), default=None)


def plan_adaptations(state: FailSlowState, now: int) -> Iterator[Decision]:
    """Advise a schedule for each job of which the loss justifies it by now."""
    if state.pool is None or state.pool.mitigation == "off":
        return
    now_s = state.cluster_s(now)
    for job_id, gang in list(state.gangs.items()):
        due_s, unclear = adaptation_due_s(state, gang), gang.unclear
        if due_s is None or due_s > now_s or unclear is None or unclear.schedule is None:
            continue
        event = advice(state, job_id, gang, unclear, unclear.schedule, now_s)
        yield Decision(event, "", gang.traceparent)


def advice(
    state: FailSlowState,
    job_id: str,
    gang: GangState,
    unclear: Unclear,
    schedule: AdaptedSchedule,
    now_s: float,
) -> MitigationPlanned:
    elapsed_s = now_s - unclear.since_s
    kept = schedule.iteration_s / schedule.unadapted_s
    remaining = max(0.0, kept * (1 + unclear.slowdown) - 1)
    saved = lost_share(unclear.slowdown) - lost_share(remaining)
    rest_s = state.mitigation.durations.survival().rest_s(elapsed_s, elapsed_s)
    cost_s = state.mitigation.costs.of(LEVEL.name).cost_s
    return MitigationPlanned(
        plan_id=f"{job_id}/{gang.attempt}/{LEVEL.name}/{state.mitigation.plans_so_far + 1}",
        job_id=job_id,
        tenant=gang.tenant,
        attempt=gang.attempt,
        level=LEVEL.name,
        actor=LEVEL.actor,
        node_ids=(),
        fault_ids=(unclear.fault_id,),
        expected_gain_s=saved * rest_s - cost_s,
        cost_s=cost_s,
        accumulated_loss_s=elapsed_s * lost_share(unclear.slowdown),
        remaining=remaining,
        rule=RULE,
        evidence=tuple(sentences(schedule)),
        schedule=schedule,
    )


def sentences(schedule: AdaptedSchedule) -> Iterator[str]:
    """Yield the slowest link, and what the schedule brings."""
    hop = max(range(len(schedule.link_delay_s)), key=lambda at: schedule.link_delay_s[at])
    yield (
        f"messages from stage {hop} to stage {hop + 1} take {schedule.link_delay_s[hop]:.3g} s,"
        " the longest of all hops"
    )
    yield (
        f"predicted iteration {schedule.iteration_s:.3g} s instead of {schedule.unadapted_s:.3g} s"
    )
