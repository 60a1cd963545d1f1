"""Text about what protects running jobs from a stop by rank, and until when."""

from __future__ import annotations

from cli.text.times import age_ms, clock

PROTECTIONS = {
    "residency": "have not run long enough to be stopped",
    "progress": "must first do the work that their start and last stop cost",
    "checkpoint": "are stopped just after their next checkpoint",
    "guarantee": "have guaranteed time",
    "no_checkpoints": "keep no checkpoints, so only a higher class stops them",
    "loss_budget": "are not stopped while the pool has spent its loss budget",
}
"""Each rule that protects the jobs on GPUs that a waiting job outranks (RULES 14 and 15)."""

DEFERRALS = {
    "residency": "it has not run long enough to be stopped",
    "progress": "it first does the work that its start and last stop cost",
    "checkpoint": "it runs to its next checkpoint",
    "guarantee": "it has guaranteed time",
}
"""Each rule that protects a running job from a stop by rank (RULES 14)."""


def deferral_lines(deferral: object, as_of: object = None) -> list[str]:
    """Return when a running job may be stopped for another one that waits, and what protects it.

    One that is due at `as_of` of the answer (ms; None: now) was put off until then.
    """
    if not isinstance(deferral, dict):
        return []
    until = deferral["until"]
    by = f" ({deferral['by_job_id']})" if deferral.get("by_job_id") else ""
    rule = str(deferral["rule"])
    why = DEFERRALS.get(rule, f"it is protected by {rule}")
    if age_ms(until, as_of) > 0:
        return [f"a stop for a job of better rank{by} was put off until {clock(until)}: {why}"]
    line = f"a job of better rank{by} waits for its GPUs: it may be stopped from {clock(until)}"
    return [f"{line}; until then {why}"]
