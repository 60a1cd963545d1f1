"""Text of `berth why-slow`: since when a job is slow, by how much, where, and what was done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from cli.text.expected_plans import expected_lines
from cli.text.times import clock, span
from shared.contracts.wait_reasons import REASONS

Row = Mapping[str, object]
SUSPECTED, CLEARED, DISMISSED = "fault.suspected.v1", "fault.cleared.v1", "fault.dismissed.v1"
ACTIONS = {
    "job.migrated.v1": "the job was migrated",
    "job.preempted.v1": "the job was preempted",
    "job.resized.v1": "the job was resized",
    "job.requeued.v1": "the job was requeued",
}
PLACED = "job.placed.v1"
PLANNED, APPLIED = "mitigation.planned.v1", "mitigation.applied.v1"
CARRIED_OUT = "mitigation.carried-out.v1"
PLAN_ENDED, TURNED_DOWN = "mitigation.cleared.v1", "mitigation.turned-down.v1"
LEVELS = {
    "redistribute": "give slow workers fewer micro-batches (in the training framework)",
    "adapt_schedule": "adapt the pipeline schedule (in the training framework)",
    "rearrange": "rearrange the workers",
    "validate": "measure {nodes} and the links between them",
    "migrate": "migrate the workers of {nodes}",
    "restart": "restart from a checkpoint",
}
OBSTACLES = {
    "no_room": "no other node has room; the job leaves before queued jobs start once one has",
    "not_running": "the job did not run, or stopped already",
    "not_there": "the job runs on none of these nodes",
    "no_checkpoints": "the job states no checkpoint_interval_s",
    "node_cordoned": "one of its nodes is cordoned, and would not take it again",
}
"""Why placement does not carry out a plan. It says `over` of one that has ended meanwhile."""
ENDS = {"recovered": "it recovered", "job_ended": "the job's attempt ended"}
UNKNOWN = "no slowdown is known; jobs that report their iterations are judged"
ALONE = (
    "it has one worker, and so no peers on other nodes: it is judged by the processes of that "
    "worker, by its own earlier iterations, and by three or more earlier runs of its name, tenant, "
    "GPU types and size"
)
MEASURE = "which node or link: berth nodes validate --job {job}, once it has left its nodes"
ONE_NODE = "all of it runs on {node}: it is that node, or the program"
NOT_PLACED = "it has not run yet"


def slowness_lines(timeline: Sequence[Row], as_of: int) -> list[str]:
    """Return a paragraph per suspected slowdown, oldest first, and what was done about it."""
    suspicions = [row for row in timeline if row["type"] == SUSPECTED]
    if not suspicions:
        return [UNKNOWN, *_limits(timeline)]
    lines = [line for row in suspicions for line in _paragraph(row, timeline, as_of)]
    is_open = any(_end_of(str(_data(row)["fault_id"]), timeline) is None for row in suspicions)
    return [*lines, *expected_lines(timeline)] if is_open else lines


def _limits(timeline: Sequence[Row]) -> list[str]:
    """Return why little can be known about a job."""
    placed = [_data(row) for row in timeline if row["type"] == PLACED]
    if not placed:
        return [NOT_PLACED]
    return [ALONE] if len(cast("Sequence[object]", placed[-1]["allocations"])) == 1 else []


def open_suspicions(timeline: Sequence[Row], job: str) -> list[str]:
    """Return a line per suspicion of a job that is neither cleared nor dismissed."""
    suspicions = (row for row in timeline if row["type"] == SUSPECTED)
    faults = [_data(row) for row in suspicions]
    still = [fault for fault in faults if _end_of(str(fault["fault_id"]), timeline) is None]
    return [
        f"{_subject(fault)} is suspected to be slow, "
        f"{_number(fault, 'slowdown'):.2f} times the usual: berth why-slow {job}"
        for fault in still
    ]


def summary_row(pool: Row) -> tuple[object, ...]:
    """Return the cells of a pool; strictness is that of suspicions of workers and of jobs."""
    hours = (_number(pool, name) / 3600 for name in ("lost_gpu_s", "cost_gpu_s", "avoided_gpu_s"))
    counts = (pool["faults"], pool["open"], pool["false_alarms"])
    strict = (pool["worker_strictness"] or 1.0, pool["job_strictness"] or 1.0)
    strictness = "/".join(f"{value:g}" for value in strict)
    mode, breaker = pool["mitigation"] or "approve", _breaker(pool)
    return (pool["pool"], mode, breaker, *counts, strictness, *(f"{h:.2f}" for h in hours))


def _breaker(pool: Row) -> str:
    if not pool["is_open"]:
        return "-" if pool["is_open"] is None else "closed"
    return f"open: {pool['out_of_use']} of {pool['nodes']} nodes out of use, {pool['most']} may be"


def _paragraph(suspicion: Row, timeline: Sequence[Row], as_of: int) -> Iterator[str]:
    fault, since = _data(suspicion), _at(suspicion)
    end = _end_of(str(fault["fault_id"]), timeline)
    until = _at(end) if end is not None else as_of
    tense = "is" if end is None else "was"
    period = f"since {clock(since)}" if end is None else f"from {clock(since)} to {clock(until)}"
    yield f"{_subject(fault)} {tense} slow {period} ({span(until - since)}): {_size(fault)}"
    yield f"  evidence: {_evidence(fault)}"
    if "cause" in fault:
        yield f"  cause: {_cause(fault)}"
    yield f"  done: {'; '.join(_actions(timeline, since, until)) or 'nothing'}"
    yield from _plans(str(fault["fault_id"]), timeline)
    is_unclear = fault.get("cause") in ("unknown", "communication")
    if end is None and is_unclear and not _names_worker(timeline):
        own = _nodes(timeline)
        job = str(fault["fault_id"]).partition("/")[0]
        yield f"  {ONE_NODE.format(node=own[0]) if len(own) == 1 else MEASURE.format(job=job)}"
    if end is not None:
        yield f"  end: {_end(end)}"


def _nodes(timeline: Sequence[Row]) -> list[str]:
    """Return the nodes that the job was placed on last."""
    placed = [_data(row) for row in timeline if row["type"] == PLACED]
    allocations = cast("Sequence[Row]", placed[-1]["allocations"]) if placed else ()
    return sorted({str(allocation["node_id"]) for allocation in allocations})


def _names_worker(timeline: Sequence[Row]) -> bool:
    """Return whether a worker is suspected and no measurement has to find it."""
    faults = [_data(row) for row in timeline if row["type"] == SUSPECTED and _data(row)["node_id"]]
    return any(_end_of(str(fault["fault_id"]), timeline) is None for fault in faults)


def _subject(fault: Row) -> str:
    if fault.get("kind") == "job":
        return "the job as a whole"
    rank = str(fault["fault_id"]).split("/")[-2]
    return f"worker {rank} on {fault['node_id']}"


def _size(fault: Row) -> str:
    usual = "its usual" if fault.get("kind") == "job" else "its peers'"
    return (
        f"{_number(fault, 'iteration_s'):.3g} s per iteration, {_number(fault, 'slowdown'):.2f} "
        f"times {usual} {_number(fault, 'peers_s'):.3g} s"
    )


def _evidence(fault: Row) -> str:
    score, count = _number(fault, "score"), fault["reports"]
    if fault.get("kind") != "job":
        return f"robust z {score:.1f} among its peers, in {count} reports in a row"
    if runs := fault.get("earlier_runs"):
        return (
            f"slow since its first iterations beside {runs} earlier runs of its name, tenant, GPU "
            f"types and size: robust z {score:.1f}"
        )
    confidence = fault.get("confidence")
    known = f"probability {confidence:.2f}, " if isinstance(confidence, float | int) else ""
    return (
        f"change point at iteration {fault.get('since_step')}: {known}shift of {score:.1f} "
        f"standard errors over {count} iterations"
    )


def _cause(fault: Row) -> str:
    """Return compute or communication, the part, and why; unknown stays unknown."""
    evidence = "; ".join(cast("Sequence[str]", fault.get("cause_evidence") or ()))
    cause = str(fault.get("cause") or "unknown")
    if cause == "unknown":
        return f"unknown ({evidence or 'nothing shows it'})"
    gpu = fault.get("gpu")
    part = f" of a {fault['part']}" if fault.get("part") else ""
    part = part if gpu is None else f" of GPU {gpu} of {fault['node_id']}"
    confidence = float(cast("float", fault.get("cause_confidence") or 0.0))
    return f"{cause}{part}, confidence {confidence:.2f} ({evidence})"


def _actions(timeline: Sequence[Row], since: int, until: int) -> Iterator[str]:
    for row in timeline:
        words = ACTIONS.get(str(row["type"]))
        if words and since <= _at(row) <= until:
            reason = str(_data(row).get("reason") or "")
            why = f" ({REASONS.get(reason, reason)})" if reason else ""
            yield f"{words} at {clock(row['at'])}{why}"


def _plans(fault_id: str, timeline: Sequence[Row]) -> Iterator[str]:
    """Return lines per plan that helps the fault: what it does, and what has become of it."""
    for row in timeline:
        plan = _data(row)
        if row["type"] != PLANNED or fault_id not in cast("Sequence[str]", plan["fault_ids"]):
            continue
        level = LEVELS.get(str(plan["level"]), str(plan["level"])).format(nodes=_node_names(plan))
        lost, stop = _number(plan, "accumulated_loss_s"), _number(plan, "cost_s")
        gain = _number(plan, "expected_gain_s")
        costs = f"{lost:.0f} s lost so far, {stop:.0f} s of stop, {gain:.0f} s expected gain"
        yield f"  plan {plan['plan_id']} at {clock(row['at'])}: {level}; {costs}"
        yield from _advice(plan)
        own = [other for other in timeline if _data(other).get("plan_id") == plan["plan_id"]]
        yield _applied(plan, own)
        if obstacle := _turned_down(own):
            yield obstacle


def _node_names(plan: Row) -> str:
    return ", ".join(cast("Sequence[str]", plan["node_ids"]))


def _advice(plan: Row) -> Iterator[str]:
    """Return what the training framework is to change, where the job reports its layout."""
    if counts := cast("Sequence[int]", plan.get("microbatches") or ()):
        yield f"    micro-batches by data-parallel group: {', '.join(map(str, counts))}"
    if schedule := cast("Row", plan.get("schedule") or {}):
        warmup, held = (cast("Sequence[int]", schedule[key]) for key in ("warmup", "activations"))
        yield (
            f"    warm-up forwards by stage: {', '.join(map(str, warmup))}; activations held: "
            f"{', '.join(map(str, held))}"
        )
        times_s = (_number(schedule, name) for name in ("iteration_s", "unadapted_s"))
        yield "    predicted iteration: {:.3g} s instead of {:.3g} s".format(*times_s)


def _applied(plan: Row, rows: Sequence[Row]) -> str:
    """Return who applied the plan, or how to; one that has ended cannot be approved any more.

    Of what only the training framework can do an approval is the word that it was done.
    """
    is_advice = plan.get("actor") == "framework"
    tries = [row for row in rows if row["type"] == APPLIED]
    ends = [str(_data(row).get("reason") or "") for row in rows if row["type"] == PLAN_ENDED]
    if not tries and ends:
        return f"    not applied; it is over: {ENDS.get(ends[-1], ends[-1])}"
    if not tries:
        waits = "advice; once it is done" if is_advice else "not approved"
        return f"    {waits}: berth faults approve {plan['plan_id']}"
    first = tries[0]
    is_automatic = _data(first).get("by") == "automatic"
    by = "applied without an operator" if is_automatic else "done" if is_advice else "approved"
    cordons = [_data(row) for row in tries if _data(row).get("cordons")]
    if _data(first).get("level") == "validate" and cordons:
        nodes = _node_names(cordons[-1])
        again = f"; cordoned {nodes} ({cordons[-1].get('reason') or 'measured'})"
    else:
        again = f", tried {len(tries)} times as there was no room" if len(tries) > 1 else ""
        if cordons and any(row["type"] == CARRIED_OUT for row in rows):
            again += f"; cordoned {_node_names(cordons[-1])}"
    return f"    {by} at {clock(first['at'])}{again}"


def _turned_down(rows: Sequence[Row]) -> str:
    """Return why placement has not carried out the plan, by its last word; empty if it has."""
    answers = [row for row in rows if row["type"] in (TURNED_DOWN, CARRIED_OUT)]
    if not answers or answers[-1]["type"] == CARRIED_OUT:
        return ""
    reason = str(_data(answers[-1])["reason"])
    has_ended = any(row["type"] == PLAN_ENDED for row in rows)
    if reason == "over" or (reason == "no_room" and has_ended):
        return "    not carried out before it was over, as no other node had room"
    return f"    not carried out at {clock(answers[-1]['at'])}: {OBSTACLES.get(reason, reason)}"


def _end_of(fault_id: str, timeline: Sequence[Row]) -> Row | None:
    ends = (row for row in timeline if row["type"] in (CLEARED, DISMISSED))
    return next((row for row in ends if _data(row).get("fault_id") == fault_id), None)


def _end(row: Row) -> str:
    data = _data(row)
    reason = str(data.get("reason") or "")
    if row["type"] == CLEARED:
        return ENDS.get(reason, reason)
    verdict = "marked a false alarm" if data.get("false_alarm") else "dismissed"
    return f"{verdict} by an operator" + (f": {reason}" if reason else "")


def _data(row: Row) -> Row:
    return cast("Row", row["data"])


def _at(row: Row) -> int:
    return cast("int", row["at"])


def _number(fault: Row, name: str) -> float:
    return float(cast("float", fault[name]))
