"""One ranking: the order that acts, who says so when a policy fails, and the shadows beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from services.priority.core.features import CONTEXT_S, compute_features
from services.priority.core.learned import (
    BadModel,
    BadOutput,
    Float32s,
    LearnedModel,
    LearnedModels,
    model_name,
    uses_history,
)
from services.priority.core.order_cache import OrderCache, Position
from services.priority.core.ordering import ScoredOrder, is_classic, order_by
from services.priority.core.policies import POLICIES, has_stable_keys
from services.priority.core.queue_view import QueueView
from services.priority.core.runtimes import RunTimes
from services.priority.core.sorting import first_of, lowest_running
from services.priority.core.state import Queue
from services.priority.core.table import RUNNING, Floats
from shared.contracts.access import PoolConfigured, RuntimeSource
from shared.contracts.base import Event
from shared.contracts.checkpoint import wall_ms
from shared.contracts.construct import construct
from shared.contracts.ranking import (
    RANKED_MOST,
    RUNNING_MOST,
    SHADOW_MOST,
    DegradeReason,
    PolicyDegraded,
    PolicyRestored,
    QueueRanked,
    Ranked,
    ShadowRanked,
)
from shared.ledger.decider import Decision

SHADOW_MS = 10_000
"""Shadows are recorded at most once per this, in wall ms."""
LEARNED = "learned:"
NOBODY = np.zeros(0, np.intp)


class Seen(NamedTuple):
    """What networks are given: features of the jobs [n, F] and of the pool [C]."""

    jobs: Float32s
    context: Float32s
    is_new: bool
    """Was the context looked at for this ranking?"""


@dataclass(frozen=True, slots=True)
class RankingInputs:
    """What there is to rank, and by which models."""

    queue: Queue
    pool: PoolConfigured
    view: QueueView
    models: LearnedModels
    now: int
    seen: Seen | None


@dataclass(frozen=True, slots=True)
class PolicyFailure:
    """Why a policy says nothing."""

    reason: DegradeReason
    detail: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Places of the first waiting jobs, a score for every job, and whose it is."""

    first: list[int]
    scores: Floats
    model: str = ""
    sha256: str = ""


def rank(queue: Queue, models: LearnedModels, now: int) -> Iterator[Decision]:
    """The order, behind what is new about the policies that made it."""
    assert queue.pool is not None
    if has_stable_keys(queue.pool):
        yield Decision(in_standing_order(queue, queue.pool, now))
        return
    queue.order_cache.forget()
    view = queue.view(now)
    base = order_by(queue.pool.base_policy, queue, view, now, queue.pool.runtime)
    view.base_score[:] = base.scores
    line = RankingInputs(queue, queue.pool, view, models, now, seen(queue, queue.pool, view, now))
    advice = None
    if learned := queue.pool.learned:
        found = by_model(line, learned)
        yield from news(queue, learned, found)
        if isinstance(found, Ranking):
            advice = found
    if advice is None:
        advice = Ranking(base.first(line.view), base.scores)
    yield Decision(ranked(line, base, advice))
    if queue.pool.shadows and now - queue.shadowed_at >= SHADOW_MS:
        for name in queue.pool.shadows:
            yield from shadowed(line, name, advice)


def seen(queue: Queue, pool: PoolConfigured, view: QueueView, now: int) -> Seen | None:
    """None where no network is asked. The context holds for a while, see `CONTEXT_S`."""
    if not (pool.learned or any(name.startswith(LEARNED) for name in pool.shadows)):
        return None
    jobs, context = compute_features(view, uses_history(pool))
    if queue.context and now - queue.context_at < wall_ms(CONTEXT_S, pool.time_scale):
        return Seen(jobs, np.array(queue.context, np.float32), False)
    return Seen(jobs, context, True)


def ranked(line: RankingInputs, base: ScoredOrder, advice: Ranking) -> QueueRanked:
    running: list[int] = []
    if line.pool.preemption == "ranked":
        running = lowest_running(line.view, advice.scores, RUNNING_MOST)
    # Validated as one: more than twice as fast as making each `Ranked` by itself.
    return QueueRanked.model_validate(
        {
            "pool": line.queue.name,
            "base_policy": line.pool.base_policy,
            "runtime": believed(line.pool) if advice.model else base.runtime,
            "learned": advice.model,
            "model_sha256": advice.sha256,
            "ranked": named(line.view, advice.scores, advice.first),
            "running": named(line.view, advice.scores, running),
            "waiting": line.view.waiting,
            "terms": base.terms | line.queue.accuracy.terms(),
            "context": line.seen.context.tolist() if line.seen and line.seen.is_new else (),
        }
    )


def believed(pool: PoolConfigured) -> RuntimeSource:
    """Whose run times a network decides by."""
    return "history" if uses_history(pool) else "user"


def in_standing_order(queue: Queue, pool: PoolConfigured, now: int) -> QueueRanked:
    """As `ranked`, without a look at those that waited before."""
    order_cache = stood(queue, pool, now)
    running: list[Ranked] = []
    if pool.preemption == "ranked":
        view = QueueView(queue.table, queue.clock(now), 0.0, NOBODY, queue.table.of(RUNNING))
        scores = order_by(pool.base_policy, queue, view, now, pool.runtime).scores
        lowest = lowest_running(view, scores, RUNNING_MOST)
        running = [
            construct(Ranked, job_id=job, score=score)
            for job, score in pairs_of(view, scores, lowest)
        ]
    runtime: RuntimeSource | Literal["none"] = "none"
    terms: dict[str, float] = {}
    if order_cache.asks_runtime:
        runtime = POLICIES[pool.base_policy].source or pool.runtime
        terms = RunTimes(queue.view(now), runtime, asked=True).terms()
    return construct(
        QueueRanked,
        pool=queue.name,
        base_policy=pool.base_policy,
        runtime=runtime,
        ranked=order_cache.first(),
        running=tuple(running),
        waiting=len(queue.waiting),
        terms=terms | queue.accuracy.terms(),
    )


def stood(queue: Queue, pool: PoolConfigured, now: int) -> OrderCache:
    """The line, brought up to date."""
    order_cache = queue.order_cache
    by = (pool.base_policy, pool.runtime, pool.time_scale, queue.origin)
    if order_cache.by != by:
        order_cache.begin(by, queue.waiting)
    if order_cache.stale:
        names = [name for name in order_cache.stale if name in queue.waiting]
        order_cache.leave()
        if names:
            order_cache.enter(placed(queue, pool, now, names))
    return order_cache


def placed(queue: Queue, pool: PoolConfigured, now: int, names: list[str]) -> list[Position]:
    """The places of waiting jobs."""
    rows = np.array([queue.jobs[name].row for name in names], np.intp)
    view = QueueView(queue.table, queue.clock(now), 0.0, rows, NOBODY)
    order = order_by(pool.base_policy, queue, view, now, pool.runtime)
    queue.order_cache.asks_runtime = order.runtime != "none"
    columns = (view.tier, -order.scores, view.submit_s, order.scores)
    rows_of = zip(names, *(column.tolist() for column in columns), strict=True)
    return [
        (tier, behind, submit_s, name, construct(Ranked, job_id=name, score=score))
        for name, tier, behind, submit_s, score in rows_of
    ]


def named(view: QueueView, scores: Floats, places: list[int]) -> list[dict[str, object]]:
    """As `Ranked` has them."""
    return [{"job_id": job, "score": score} for job, score in pairs_of(view, scores, places)]


def pairs_of(view: QueueView, scores: Floats, places: list[int]) -> Iterable[tuple[str, float]]:
    """Job id and score of the jobs at those places."""
    if not places:
        return ()
    return zip(view.job_ids[places].tolist(), scores[places].tolist(), strict=True)


def by_model(line: RankingInputs, name: str) -> Ranking | PolicyFailure:
    """What a learned policy says of all jobs."""
    chosen = name if name in line.models else model_name(name, line.pool)
    match line.models.get(chosen):
        case None:
            return PolicyFailure(
                "unknown", f"learned: {name!r}, must be a model of this installation"
            )
        case BadModel() as error:
            return PolicyFailure("bad_model", str(error)[:512])
        case LearnedModel() as model:
            assert line.seen is not None, "features of a pool that asks a network"
            try:
                own = model.scores(line.seen.jobs, line.seen.context).astype(np.float64)
            except BadOutput as error:
                return PolicyFailure("bad_output", str(error)[:512])
            scores = model.over(own, line.view.base_score)
            first = first_of(line.view, scores, RANKED_MOST)
            return Ranking(first, scores, chosen, model.sha256)


def by_name(line: RankingInputs, name: str) -> Ranking | PolicyFailure:
    """What a shadow says: a classic policy, or `learned:` and a name."""
    if name.startswith(LEARNED):
        return by_model(line, name.removeprefix(LEARNED))
    if not is_classic(name):
        return PolicyFailure("unknown", f"shadows: {name!r}, must be a policy of this installation")
    order = order_by(name, line.queue, line.view, line.now, line.pool.runtime)
    return Ranking(order.first(line.view), order.scores)


def shadowed(line: RankingInputs, name: str, acting: Ranking) -> Iterator[Decision]:
    found = by_name(line, name)
    yield from news(line.queue, name, found, shadow=True)
    if isinstance(found, Ranking):
        top = found.first[:SHADOW_MOST]
        yield Decision(
            ShadowRanked(
                pool=line.queue.name,
                policy=name,
                model_sha256=found.sha256,
                top=tuple(line.view.job_ids[top].tolist()),
                agreement=agreement(acting.first, found.first),
                waiting=line.view.waiting,
            )
        )


def agreement(one: list[int], other: list[int], most: int = SHADOW_MOST) -> float:
    """Kendall's tau over the first jobs of either order: 1 the same, -1 the reverse.

    A job that an order does not name comes behind those that it names, equal to its like.
    """
    jobs = sorted({*one[:most], *other[:most]})
    if len(jobs) < 2:
        return 1.0
    first, second = (positions(jobs, order) for order in (one, other))
    signs = np.sign(first[:, None] - first) * np.sign(second[:, None] - second)
    pairs = len(jobs) * (len(jobs) - 1)
    return round(float(signs.sum()) / pairs, 6)


def positions(jobs: list[int], order: list[int]) -> Floats:
    at = {job: place for place, job in enumerate(order)}
    return np.array([at.get(job, len(order)) for job in jobs], np.float64)


def news(
    queue: Queue, name: str, found: Ranking | PolicyFailure, shadow: bool = False
) -> Iterator[Decision]:
    """A policy that fails says so once, and once that it is back."""
    known = is_degraded(queue, name, shadow)
    if isinstance(found, PolicyFailure) and not known:
        yield Decision(
            PolicyDegraded(
                pool=queue.name,
                learned=name,
                shadow=shadow,
                reason=found.reason,
                detail=found.detail,
            )
        )
    elif isinstance(found, Ranking) and known:
        yield Decision(PolicyRestored(pool=queue.name, learned=name, shadow=shadow))


def key_of(name: str, shadow: bool) -> str:
    return f"shadow {name}" if shadow else name


def is_degraded(queue: Queue, name: str, shadow: bool) -> bool:
    return key_of(name, shadow) in queue.degraded


def fold_ranking(queue: Queue, event: Event, at: int) -> None:
    match event:
        case QueueRanked(ranked=first, context=context):
            queue.ranked_at = at
            if context:
                queue.context, queue.context_at = context, at
            queue.head = first[0].job_id if first else ""
            queue.dirty = False
        case ShadowRanked():
            queue.shadowed_at = at
        case PolicyDegraded(learned=name, shadow=shadow, detail=detail):
            queue.degraded[key_of(name, shadow)] = detail
        case PolicyRestored(learned=name, shadow=shadow):
            queue.degraded.pop(key_of(name, shadow), None)
