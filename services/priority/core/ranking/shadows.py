"""Shadow policies: they rank the same jobs without effect, and are compared with the acting one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from services.priority.core.history.distributions import Floats
from services.priority.core.ranking.degradation import report_health
from services.priority.core.ranking.evaluation import Ranking, RankingInputs, rank_by_name
from shared.contracts.ranking import SHADOW_MOST, ShadowRanked
from shared.ledger.decider import Decision

SHADOW_MS = 10_000
"""Shadows are recorded at most once per this, in wall ms."""


def rank_shadow(inputs: RankingInputs, name: str, acting: Ranking) -> Iterator[Decision]:
    """Yield a change of the shadow's health, then its ranking if it has one."""
    result = rank_by_name(inputs, name)
    yield from report_health(inputs.queue, name, result, shadow=True)
    if isinstance(result, Ranking):
        top = result.first[:SHADOW_MOST]
        yield Decision(
            ShadowRanked(
                pool=inputs.queue.name,
                policy=name,
                model_sha256=result.sha256,
                top=tuple(inputs.view.job_ids[top].tolist()),
                agreement=kendall_tau(acting.first, result.first),
                waiting=inputs.view.waiting,
            )
        )


def kendall_tau(one: list[int], other: list[int], most: int = SHADOW_MOST) -> float:
    """Return Kendall's tau over the first jobs of either order: 1 the same, -1 the reverse.

    A job that an order does not name comes behind those that it names, equal to all such.
    """
    jobs = sorted({*one[:most], *other[:most]})
    if len(jobs) < 2:
        return 1.0
    first, second = (positions(jobs, order) for order in (one, other))
    signs = np.sign(first[:, None] - first) * np.sign(second[:, None] - second)
    pairs = len(jobs) * (len(jobs) - 1)
    return round(float(signs.sum()) / pairs, 6)


def positions(jobs: list[int], order: list[int]) -> Floats:
    position_of = {job: position for position, job in enumerate(order)}
    return np.array([position_of.get(job, len(order)) for job in jobs], np.float64)
