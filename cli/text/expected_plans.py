"""Text of the plan that is due next for a slow job, and of the levels that are not planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from cli.text.times import clock

EXPECTED = "mitigation.expected.v1"
LEVELS = {
    "redistribute": "fewer micro-batches for slow workers",
    "adapt_schedule": "an adapted pipeline schedule",
    "rearrange": "other links for light traffic",
    "validate": "a measurement of its nodes",
    "migrate": "a migration off its slow nodes",
    "restart": "a restart from its checkpoint",
}
REASONS = {
    "planned": "it was planned already",
    "no_help": "it helps no fault of this cause",
    "no_gain": "the job would be as slow",
    "too_dear": "with what earlier ones have cost it could cost more than the dearest level",
    "not_offered": "Berth does not offer it here",
}


def expected_lines(timeline: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield what is due next by the newest statement, and why not more; nothing without one.

    Events leave out fields with their default.
    """
    stated = [row for row in timeline if row["type"] == EXPECTED]
    if not stated:
        return
    plan = cast("Mapping[str, object]", stated[-1]["data"])
    level = str(plan["level"])
    if plan.get("due_at") is None:
        yield "next plan: none is due in the next hours"
    else:
        lost, due = (float(cast("float", plan.get(name, 0.0))) for name in ("lost_s", "due_lost_s"))
        yield (
            f"next plan: {LEVELS.get(level, level)}, due at {clock(plan['due_at'])}, once"
            f" {due:.0f} s are lost ({lost:.0f} s at {clock(stated[-1]['at'])}); {plan['rule']}"
        )
    for other in cast("Sequence[Mapping[str, object]]", plan.get("declined", ())):
        name, reason = str(other["level"]), str(other["reason"])
        yield f"  not {LEVELS.get(name, name)}: {REASONS.get(reason, reason)}"
