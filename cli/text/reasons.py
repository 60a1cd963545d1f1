"""Text of `berth why`: what each event meant for a job, with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from cli.text.failures import failure_of, failure_words
from cli.text.nodes import loss_words, silence_of, worker_loss
from cli.text.phases import transfer_words
from cli.text.protections import PROTECTIONS
from cli.text.times import age_ms, clock
from shared.contracts.wait_reasons import (
    REASONS,
    because,
    held_words,
    numbers_of,
    plain_hold,
    value_text,
)

Data = Mapping[str, object]


NODES_CHOSEN: dict[object, str] = {
    1.0: ", on the nodes that the scheduler chose",
    0.0: "; those that the scheduler chose had no room, took no work, were slow or had failed it",
}
"""By the term `chosen_nodes` of a placement."""


def words(type_: str, data: Data) -> str:
    """Return one line; an unknown reason is shown unchanged."""
    if target := data.get("transferred_to"):
        return transfer_words(cast("Data", target))
    if (line_of := WORDS.get(type_)) is not None:
        return line_of(data)
    return failure_words(failure) if (failure := failure_of(data)) else because(data)


def _admitted(data: Data) -> str:
    return "within quota" + (", borrowed beyond its share" if data.get("borrowed") else "")


def _migrated(data: Data) -> str:
    """Return where a job goes, why, and how much work it repeats from its checkpoint."""
    reason, lost_s = str(data.get("reason") or ""), data.get("lost_work_s")
    by = f" (for {data['by_job_id']})" if data.get("by_job_id") else ""
    is_dear = isinstance(lost_s, (int, float)) and lost_s > 0
    cost = f"; it cost {value_text(lost_s)} s of work" if is_dear else ""
    return f"to {_few(data.get('to_nodes'))}: {REASONS.get(reason, reason)}{by}{cost}"


def _resized(data: Data) -> str:
    sizes = f"from {data.get('from_workers')} to {data.get('to_workers')} workers"
    return f"{sizes}: {because(data)}"


def _placed(data: Data) -> str:
    allocations = cast("list[Data]", data.get("allocations") or [])
    shown = _few(sorted({str(allocation["node_id"]) for allocation in allocations}))
    line = f"on {shown} after {_seconds(data.get('waited_ms'))}, by {data.get('policy')}"
    terms = cast("Data", data.get("terms") or {})
    return line + NODES_CHOSEN.get(terms.get("chosen_nodes"), "")


def _held(data: Data) -> str:
    """Return why a job waits, what protects the jobs that it outranks, and what is reserved."""
    detail = data.get("detail")
    if not isinstance(detail, dict):
        return because(data)
    parts = [held_words(data)]
    if "faster_at" in detail:
        text = "by its speeds and run time it is over sooner on faster GPUs, expected at {}"
        parts = [_at(text, detail["faster_at"]), numbers_of(plain_hold(data))]
    text = "the scheduler of the pool gives it no GPUs before its next proposal, at {}"
    parts.append(_at(text, detail.get("allotted_at")))
    if nodes := detail.get("chosen_nodes"):
        parts.append(f"the scheduler of the pool chose {nodes} for it, where others still stop")
    if "protected_by" in detail:
        rule = str(detail["protected_by"])
        lower = f"jobs of lower rank {PROTECTIONS.get(rule, f'are protected by {rule}')}"
        parts.append(lower + _at(", until {}", detail.get("protected_until")))
    if stops := detail.get("deferred_stops"):
        parts.append(f"{stops:.0f} of them would then be stopped for this job")
    text = "it waited so long that GPUs are reserved for it as they become free, at most until {}"
    parts.append(_at(text, detail.get("reserved_until")))
    text = "its reservation lapsed, and the next one does not begin before {}"
    parts.append(_at(text, detail.get("not_reserved_before")))
    if detail.get("outlasted_by"):
        parts.append(f"{detail['outlasted_by']} has run since before that reservation")
    return "; ".join(part for part in parts if part)


def _at(text: str, at_ms: object) -> str:
    """Return the text with that time in it; empty where it is not known."""
    return text.format(clock(int(at_ms))) if isinstance(at_ms, (int, float)) else ""


def _preempted(data: Data) -> str:
    """Return why a job was stopped, for which one, and what the stop cost it where it is given.

    Placement estimates the cost of a stop by rank alone; other stops give 0.
    """
    terms = cast("Data", data.get("terms") or {})
    restart_s, starts = terms.get("restart_s"), terms.get("starts")
    restart = "a restart of {} s" + (
        " (as its last start took)" if terms.get("restart_measured") else ""
    )
    parts = ((data.get("lost_work_s"), "{} s of work"), (restart_s, restart))
    costs = [
        text.format(value_text(cost_s))
        for cost_s, text in parts
        if isinstance(cost_s, (int, float)) and cost_s > 0
    ]
    cost = f"; it cost {' and '.join(costs)}" if costs else ""
    reason = str(data.get("reason") or "")
    why = worker_loss(terms) or REASONS.get(reason, reason)
    by = f" (for {data['by_job_id']})" if data.get("by_job_id") else ""
    so_far = f"; it had started {starts:.0f} times" if isinstance(starts, (int, float)) else ""
    return f"{why}{by}{silence_of(terms)}{cost}{so_far}"


def _few(names: object) -> str:
    """Return the first names and the number of the rest."""
    shown = [str(name) for name in names] if isinstance(names, (list, tuple)) else []
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")


def _seconds(ms: object) -> str:
    return f"{ms / 1000:.1f} s" if isinstance(ms, (int, float)) else "-"


WORDS: dict[str, Callable[[Data], str]] = {
    "job.admitted.v1": _admitted,
    "job.enqueued.v1": lambda data: f"in the queue, attempt {data.get('attempt', 1)}",
    "job.placed.v1": _placed,
    "job.held.v1": _held,
    "job.preempted.v1": _preempted,
    "job.migrated.v1": _migrated,
    "job.resized.v1": _resized,
    "job.readmitted.v1": lambda data: f"attempt {data.get('attempt')} may start",
    "node.lost.v1": loss_words,
    "job.started.v1": lambda data: "all workers were ready",
    "job.succeeded.v1": lambda data: f"ran {_seconds(data.get('ran_ms'))}",
}
"""The line of each event type; other types are failures, or have a reason."""


def deciding(position: object, placing: object) -> list[str]:
    """Return the queue position of a waiting job, or the terms of its last placement."""
    shown = [_queue_position(position)] if isinstance(position, dict) else []
    if isinstance(placing, dict):
        shown += [_placing(placing), *_terms(placing.get("terms"))]
    return shown


def holds(start: Data, as_of: object = None) -> bool:
    """Return whether an interval ends later than a second behind `as_of`, ms; None: now."""
    return age_ms(cast("int", start["p90_at"]), as_of) <= -1000


def start_lines(start: object, as_of: object = None) -> list[str]:
    """Return when a waiting job will start, and how often such intervals held.

    An interval that has passed at `as_of` of the answer (ms; None: now), or ends within a second,
    says nothing any more.
    """
    if not isinstance(start, dict):
        return []
    early, middle, late = (clock(start[name]) for name in ("p10_at", "p50_at", "p90_at"))
    if not holds(start, as_of):
        return ["no estimate of its start holds at present; the next one follows"]
    line = f"starts between {early} and {late} with 80 %"
    if age_ms(start["p50_at"], as_of) < 0:
        line += f", as likely as not by {middle}"
    if start.get("pool"):
        line += f" in pool {start['pool']} (behind your last job there with as many GPUs)"
    elif start.get("of") == "queue":
        line += " (as your last job before it with as many GPUs; its own estimate follows)"
    if start.get("samples"):
        line += f"; {start['coverage']:.0%} of the pool's last {start['samples']} intervals held"
    return [line]


def other_pool_lines(pools: object) -> list[str]:
    """Return the other pools that a waiting job may go to, and what keeps it from each."""
    return [
        _other_pool(row) for row in cast("list[Data]", pools if isinstance(pools, list) else [])
    ]


def _other_pool(pool: Data) -> str:
    if rule := pool.get("rule"):
        return f"it cannot go to pool {pool['pool']} now: {rule}"
    room = "its free GPUs, cores and memory and your quota have room"
    waiting = f"no job waits there ({pool['waiting']} now) and " if pool.get("waiting") else ""
    return f"it goes to pool {pool['pool']} as soon as {waiting}{room}"


def _queue_position(position: Data) -> str:
    """Return the queue position with the scores of the job, the one ahead, and the first."""
    waiting = position.get("waiting")
    if position.get("position") is None:
        return f"not among the first of {waiting} in the queue, by {_ranker(position)}"
    scores = {
        "score": position.get("score"),
        "ahead": position.get("score_ahead"),
        "first": position.get("best_score"),
    }
    shown = ", ".join(
        f"{name} {value_text(value)}" for name, value in scores.items() if value is not None
    )
    return (
        f"number {position['position']} of {waiting} in the queue, by {_ranker(position)}: {shown}"
    )


def _ranker(position: Data) -> str:
    learned, runtime = position.get("learned"), position.get("runtime")
    parts = [str(position.get("base_policy"))]
    if runtime not in (None, "", "none"):
        parts.append(f"run times from {runtime}")
    if learned:
        parts.append(f"re-ranked by {learned}{_model(position)}")
    return ", ".join(parts)


def _placing(placing: Data) -> str:
    parts = [f"placed by {placing.get('policy')}"]
    if placing.get("solver"):
        parts.append(f"solver {placing['solver']}")
    if placing.get("score") is not None:
        parts.append(f"score {value_text(placing['score'])}{_model(placing)}")
    return ", ".join(parts)


def _model(data: Data) -> str:
    sha256 = str(data.get("model_sha256") or "")
    return f" (model {sha256[:12]})" if sha256 else ""


def _terms(terms: object) -> list[str]:
    if not isinstance(terms, dict) or not terms:
        return []
    shown = {**terms}
    if isinstance(position := shown.get("position"), int | float):
        shown["position"] = position + 1  # An event counts from 0, all that is shown from 1.
    return [
        "  " + ", ".join(f"{name} {value_text(value)}" for name, value in sorted(shown.items()))
    ]


def wait_line(status: Data, *, is_shown: bool) -> str:
    """Return that a job waits or its nodes are silent, or, where that `is_shown`, that it runs;
    empty for another one."""
    attempt, phase = cast("int", status["attempt"]), str(status["phase"])
    silent = ", ".join(cast("list[str]", status.get("silent_nodes") or []))
    match phase:
        case "placed" | "running" if silent:
            return f"node {silent} is silent: its output follows when it is heard again"
        case "placed":
            return f"attempt {attempt} starts" if is_shown else ""
        case "running":
            return f"attempt {attempt} runs" if is_shown else ""
        case "admitted" | "deferred" | "waiting" | "backoff":
            # The attempt of a job in the queue is the one that comes.
            tried = attempt if phase == "backoff" else attempt - 1
            again = f" again after attempt {tried}" if tried > 0 else ""
            return f"the job waits{again}: {_why_it_waits(status) or phase}"
        case _:
            return ""


def _why_it_waits(status: Data) -> str:
    """Return what holds a job back, else why the attempt before failed."""
    name = str(status["reason"])
    failure = failure_of(status)
    if name not in REASONS and failure is not None:
        return failure_words(failure)
    return REASONS.get(name, name)
