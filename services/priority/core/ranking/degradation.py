"""Policies that fail are reported once, and once more when they work again."""

from __future__ import annotations

from collections.abc import Iterator

from services.priority.core.ranking.evaluation import PolicyFailure, Ranking
from services.priority.core.state import PriorityState
from shared.contracts.ranking import PolicyDegraded, PolicyRestored
from shared.ledger.decider import Decision


def report_health(
    queue: PriorityState, name: str, result: Ranking | PolicyFailure, shadow: bool = False
) -> Iterator[Decision]:
    """Yield the change of a policy's health, if its last result brings one."""
    degraded = degraded_key(name, shadow) in queue.degraded
    if isinstance(result, PolicyFailure) and not degraded:
        yield Decision(
            PolicyDegraded(
                pool=queue.name,
                learned=name,
                shadow=shadow,
                reason=result.reason,
                detail=result.detail,
            )
        )
    elif isinstance(result, Ranking) and degraded:
        yield Decision(PolicyRestored(pool=queue.name, learned=name, shadow=shadow))


def degraded_key(name: str, shadow: bool) -> str:
    """Return the policy's key in `PriorityState.degraded`: it may fail as a shadow alone."""
    return f"shadow {name}" if shadow else name
