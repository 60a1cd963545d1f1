"""How workers are asked to end."""

from __future__ import annotations

from collections.abc import Iterable

from services.executor.core.orders import Effect, Say, Stop
from services.executor.core.state import Phase, Worker


def stop(workers: Iterable[Worker], at_most_s: float = float("inf")) -> list[Effect]:
    """Only what runs gets its grace; of what is gone, the last word is said again."""
    effects: list[Effect] = []
    for worker in workers:
        if worker.phase is Phase.GONE:
            effects.extend([Say(worker.last)] if worker.last else [])
        elif worker.phase is not Phase.STOPPING:
            grace_s = worker.grace_s if worker.phase is Phase.RUNNING else 0.0
            worker.phase = Phase.STOPPING
            effects.append(Stop(worker.allocation_id, min(grace_s, at_most_s)))
    return effects
