"""The history of a job's waiting in words: what each event meant for it, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

Data = Mapping[str, object]

PHASES = {
    "job.admitted.v1": "admitted",
    "job.deferred.v1": "deferred",
    "job.readmitted.v1": "admitted",
    "job.rejected.v1": "rejected",
    "job.enqueued.v1": "waiting",
    "job.held.v1": "waiting",
    "job.placed.v1": "starting",
    "job.start-failed.v1": "stopping",
    "job.preempted.v1": "stopping",
    "job.migrated.v1": "moving",
    "job.resized.v1": "resizing",
    "job.requeued.v1": "waiting",
    "job.attempt-failed.v1": "backoff",
    "job.cancelled.v1": "cancelled",
    "job.succeeded.v1": "succeeded",
    "job.failed.v1": "failed",
}

REASONS = {
    "quota": "its tenant's quota is used up",
    "spot_quota": "the spot quota is used up",
    "dependency": "a job that it depends on has not succeeded yet",
    "no_nodes": "the pool has no nodes yet",
    "backoff": "it waits before the next attempt",
    "no_capacity": "too few GPUs are free",
    "no_node_fits": "no node has room for one of its workers",
    "behind_reservation": "GPUs are kept for a job before it",
    "behind_head": "the job at the head of the line does not fit, and nobody passes it",
    "reserved_for_head": "it would delay the job at the head of the line",
    "rank_missing": "it has no rank yet",
    "draining": "its nodes are being drained",
    "infeasible": "the pool could never run it",
    "higher_class": "a job of a higher class needed the GPUs",
    "spot_reclaimed": "its spot GPUs were reclaimed",
    "outranked": "a job of a better rank needed the GPUs",
    "node_drained": "its node was drained",
    "node_lost": "its node was lost",
    "migrated": "it goes on where GPUs are kept for it",
    "resized": "it goes on with another number of workers",
    "drain": "its node is drained",
    "slow_node": "its node is slow",
    "defragment": "so that larger jobs find room",
    "balance": "so that the load is spread",
    "grow": "nobody waits for the GPUs that it grows into",
    "shrink": "a job in line can start on what it gives up",
}


def phase(type_: str) -> str:
    return PHASES.get(type_, type_.split(".")[1])


def words(type_: str, data: Data) -> str:
    """One line; a reason that no table knows is shown as it stands."""
    match type_:
        case "job.admitted.v1":
            return "within quota" + (", borrowed beyond its share" if data.get("borrowed") else "")
        case "job.enqueued.v1":
            return f"in the queue, attempt {data.get('attempt', 1)}"
        case "job.placed.v1":
            return _placed(data)
        case "job.migrated.v1":
            by = f" (for {data['by_job_id']})" if data.get("by_job_id") else ""
            return f"to {_few(data.get('to_nodes'))}: {_because(data)}{by}"
        case "job.resized.v1":
            sizes = f"from {data.get('from_workers')} to {data.get('to_workers')} workers"
            return f"{sizes}: {_because(data)}"
        case "job.readmitted.v1":
            return f"attempt {data.get('attempt')} may start"
        case "job.succeeded.v1":
            return f"ran {_seconds(data.get('ran_ms'))}"
        case _:
            return _because(data)


def _placed(data: Data) -> str:
    allocations = cast("list[Data]", data.get("allocations") or [])
    shown = _few(sorted({str(each["node_id"]) for each in allocations}))
    return f"on {shown} after {_seconds(data.get('waited_ms'))}, by {data.get('policy')}"


def _few(names: object) -> str:
    """The first of them, and how many more there are."""
    found = [str(name) for name in names] if isinstance(names, (list, tuple)) else []
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _because(data: Data) -> str:
    reason = str(data.get("reason") or "")
    said = REASONS.get(reason, reason.replace("_", " "))
    return "; ".join(part for part in (said, _numbers(data)) if part) or "-"


def _numbers(data: Data) -> str:
    """What is short, and by how much."""
    detail = data.get("detail")
    found: dict[str, object] = dict(detail) if isinstance(detail, dict) else {}
    if isinstance(detail, str) and detail:
        found["detail"] = detail
    for name in ("short_gpus", "exit_code", "attempt", "lost_work_s"):
        if data.get(name) not in (None, "", 0, 0.0):
            found.setdefault(name, data[name])
    return ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in found.items())


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _seconds(ms: object) -> str:
    return f"{ms / 1000:.1f} s" if isinstance(ms, (int, float)) else "-"


def deciding(line: object, placing: object) -> list[str]:
    """What decided: the place in line of a job that waits, or the terms of its last placing."""
    found: list[str] = []
    if isinstance(line, dict):
        found.append(_in_line(line))
    if isinstance(placing, dict):
        found += [_placing(placing), *_terms(placing.get("terms"))]
    return found


def _in_line(line: Data) -> str:
    """Scores of the job, of the one ahead and of the first say how far it is from its turn."""
    waiting = line.get("waiting")
    if line.get("position") is None:
        return f"not among the first of {waiting} in line, by {_ranker(line)}"
    scores = {
        "score": line.get("score"),
        "ahead": line.get("score_ahead"),
        "first": line.get("best_score"),
    }
    said = ", ".join(
        f"{name} {_shown(value)}" for name, value in scores.items() if value is not None
    )
    return f"number {line['position']} of {waiting} in line, by {_ranker(line)}: {said}"


def _ranker(line: Data) -> str:
    learned, runtime = line.get("learned"), line.get("runtime")
    parts = [str(line.get("base_policy"))]
    if runtime not in (None, "", "none"):
        parts.append(f"run times from {runtime}")
    if learned:
        parts.append(f"re-ranked by {learned}{_model(line)}")
    return ", ".join(parts)


def _placing(placing: Data) -> str:
    parts = [f"placed by {placing.get('policy')}"]
    if placing.get("solver"):
        parts.append(f"solver {placing['solver']}")
    if placing.get("score") is not None:
        parts.append(f"score {_shown(placing['score'])}{_model(placing)}")
    return ", ".join(parts)


def _model(data: Data) -> str:
    sha256 = str(data.get("model_sha256") or "")
    return f" (model {sha256[:12]})" if sha256 else ""


def _terms(terms: object) -> list[str]:
    if not isinstance(terms, dict) or not terms:
        return []
    return ["  " + ", ".join(f"{name} {_shown(value)}" for name, value in sorted(terms.items()))]
