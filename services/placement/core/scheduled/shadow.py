"""The shadow of a pool's scheduler: it proposes on the same view without effect, and is compared.

Where the pool has a scheduler the view is that of its proposal, and this is in effect. Else it is
the pool every `scheduler_round_s`, and what runs is in effect. No decision depends on a shadow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.allot import round_ms
from services.placement.core.scheduled.cluster import cluster_view, first_waiting
from services.placement.core.scheduled.request import MEMORY_BYTES, ProposalRequest
from shared.contracts.construct import construct
from shared.contracts.proposals import ProposalReady, ProposedGpus, ShadowReady
from shared.contracts.schedules import SHADOW_MOST, ShadowComparison, ShadowProposed
from shared.ledger.decider import Decision
from shared.schedulers.hooks import Allotment, Hooks, running_allotments
from shared.schedulers.view import ClusterView

NOTHING = Allotment("", 0)


class Seen(NamedTuple):
    """A view of the pool, and the GPUs that jobs have in effect on it."""

    request: ProposalRequest
    viewed_at: int
    """ms"""
    beside: str
    """Scheduler in effect; empty: the ranked queue."""
    in_effect: Mapping[str, Allotment]


def shadow_of(pool: Pool) -> str | None:
    """Return the name of the pool's shadow; None without one."""
    return pool.settings.scheduler_shadow if pool.settings else None


def beside_scheduler(request: ProposalRequest, answer: ProposalReady, viewed_at: int) -> Seen:
    """Return the view of a proposal; without one the ranked queue is in effect."""
    if answer.refused or answer.failed:
        return Seen(request, viewed_at, "", running_allotments(request.view))
    in_effect = {own.job_id: Allotment(own.gpu_type, own.gpus) for own in answer.proposed}
    return Seen(request, viewed_at, request.scheduler, in_effect)


def beside_queue(pool: Pool, now: int) -> Seen:
    """Return the pool at `now` ms, of which the ranked queue decides."""
    view = cluster_view(pool, now)
    queue = tuple(job.job_id for job in first_waiting(pool, Hooks.most_waiting))
    request = ProposalRequest(0, "", view, queue, "{}")
    return Seen(request, now, "", running_allotments(view))


def request_of_shadow(pool: Pool, seen: Seen) -> ProposalRequest:
    return replace(seen.request, scheduler=shadow_of(pool) or "", memory=pool.shadow.memory)


def compared(request: ProposalRequest, seen: Seen, answer: ProposalReady) -> ShadowReady:
    """Return the answer to a request of a shadow beside what is in effect."""
    comparison = ShadowComparison()
    if not (answer.refused or answer.failed):
        comparison = compare(seen.request.view, seen.in_effect, answer.proposed)
    return ShadowReady(
        scheduler=request.scheduler,
        beside=seen.beside,
        viewed_at=seen.viewed_at,
        compared=comparison,
        memory=answer.memory,
        refused=answer.refused,
        failed=answer.failed,
        propose_ms=answer.propose_ms,
    )


def compare(
    view: ClusterView, in_effect: Mapping[str, Allotment], proposed: Iterable[ProposedGpus]
) -> ShadowComparison:
    """Compare by type and number of GPUs: the nodes of two schedulers differ for nothing."""
    shadow = {own.job_id: Allotment(own.gpu_type, own.gpus) for own in proposed}
    job_ids = sorted({*in_effect, *shadow})
    pairs = [(in_effect.get(name, NOTHING), shadow.get(name, NOTHING)) for name in job_ids]
    common = sum(min(one.gpus, two.gpus) for one, two in pairs if one.gpu_type == two.gpu_type)
    gpus, shadow_gpus = (sum(own.gpus for own in side.values()) for side in (in_effect, shadow))
    either = gpus + shadow_gpus - common
    present = running_allotments(view)
    kept = [name for name in present if name in shadow]
    others = [name for name, (one, two) in zip(job_ids, pairs, strict=True) if one != two]
    return ShadowComparison(
        agreement=round(common / either, 6) if either else 1.0,
        gpus=gpus,
        shadow_gpus=shadow_gpus,
        starts=len(shadow) - len(kept),
        stops=len(present) - len(kept),
        changes=sum(present[name] != shadow[name] for name in kept),
        others=tuple(others[:SHADOW_MOST]),
    )


def note_shadow(pool: Pool, message: ShadowReady) -> Iterator[Decision]:
    """Yield the proposal of the pool's shadow as an event; one of another shadow is dropped."""
    if shadow_of(pool) != message.scheduler:
        return
    has_memory = not (message.refused or message.failed) and len(message.memory) <= MEMORY_BYTES
    yield Decision(
        construct(
            ShadowProposed,
            pool=pool.name,
            scheduler=message.scheduler,
            beside=message.beside,
            number=pool.shadow.number + 1,
            until=message.viewed_at + round_ms(pool),
            compared=message.compared,
            memory=message.memory if has_memory else pool.shadow.memory,
            refused=message.refused,
            failed=message.failed,
            propose_ms=message.propose_ms,
        )
    )
