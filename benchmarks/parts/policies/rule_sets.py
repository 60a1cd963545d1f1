"""The rules by which rank may stop a job, whole and with one of them left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import geometric_mean
from typing import Any

from benchmarks.parts.policies.preemption import PreemptionCell
from benchmarks.parts.policies.rules import GITTINS, NamedRules
from shared.contracts.pools import NEVER_S

ALL = "all rules"
NEVER_DEARER = 99
LEFT_OUT: dict[str, dict[str, Any]] = {
    ALL: {},
    "no window after a checkpoint": {"checkpoint_window_s": NEVER_S},
    "no protection that doubles": {"cheap_restarts": NEVER_DEARER},
    "no loss budget": {"loss_share": 1.0},
    "no price": {"preempt_price": 0.0},
    "residency alone": {"preemption_protection": "residency"},
}
"""Pool settings of each set; that a start pays for the last stop is no setting, so it is kept."""


def rule_sets() -> list[NamedRules]:
    """Return the Gittins rank under each set of rules."""
    return [
        NamedRules(name, GITTINS.runtime_source, replace(GITTINS.rules, **settings))
        for name, settings in LEFT_OUT.items()
    ]


def summary_of(cells: Sequence[PreemptionCell]) -> dict[str, object]:
    """Return the waits over those of the best policy without preemption, less 1, and the worst
    losses of one set; the waits are None where a run did not end.
    """
    gains = [cell.wait_vs_best_nonpreemptive for cell in cells]
    known = [gain for gain in gains if gain is not None]
    has_all = len(known) == len(gains)
    return {
        "mean": round(geometric_mean(1.0 + gain for gain in known) - 1.0, 4) if has_all else None,
        "worst": round(max(known), 4) if has_all else None,
        "lost_share": round(max(cell.lost_share for cell in cells), 4),
        "max_starts": max(cell.max_starts for cell in cells),
        "not_ended": sum(not cell.ended for cell in cells),
    }
