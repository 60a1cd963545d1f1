"""Hadar (Sultana et al., IPDPS'24): the jobs whose utility is above the price of their GPUs.

The publication has no code. A GPU of a node costs more the more of the node is taken, from a price
below any job's utility to one above it; a gang takes the placement with the largest payoff, utility
less cost, where one is positive. Prices begin anew in each round. GPUs that are worth nothing to
any job at their price go to the jobs in their order all the same, so none is idle beside a job that
could use it; that is not of the publication.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from shared.performance.footprint import Footprint
from shared.performance.rates import slowest_rate
from shared.schedulers.hooks import Allotment, Allotments, Decides, Hooks, Memory, Need, Placements
from shared.schedulers.placing import FreeGpus, take
from shared.schedulers.view import CandidateJob, ClusterView, Placement, footprint_of, gpus_of

ETA = 1.0
"""Scale of the least price, which keeps it below every payoff."""
EXACT_JOBS = 8
"""Jobs at the head of the queue for which taking their best placement and leaving it are both
tried; the next ones take what pays."""
SPREAD_COST = 0.05
"""Part of its utility that a gang over several nodes costs beside its GPUs: the publication has a
cost of communication, and no number for it."""
FIRST_GUESS_S = 3600.0


class Offer(NamedTuple):
    """A placement with its utility less its cost."""

    placement: Placement
    payoff: float


@dataclass(frozen=True, slots=True)
class Prices:
    """`low` and `high` are the prices of a GPU by type on an empty and on a full node."""

    low: Mapping[str, float]
    high: Mapping[str, float]

    def of(self, gpu_type: str, held: int, capacity: int) -> float:
        """Return the price of a GPU of a node, of which so many of its GPUs are held."""
        low, high = self.low[gpu_type], self.high[gpu_type]
        return float(low * (high / low) ** (held / capacity))


Best: TypeAlias = tuple[float, dict[str, Placement]]


class Hadar(Hooks):
    """A job of unknown rates is as fast everywhere; one of unknown length has an hour left.

    The utility is the work of a job in seconds on its fastest type, over its time from arrival to
    end, which is 1 for a job that never waits: the sum favours short completion times.
    """

    name: ClassVar[str] = "hadar"
    source: ClassVar[str] = "Sultana et al., IPDPS'24, as reconstructed from the publications"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("order", "type", "nodes")
    exact_jobs: ClassVar[int] = EXACT_JOBS

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        """Return the jobs by the largest utility that each could have, per GPU."""
        note_work(view, memory)
        best = {job.job_id: self.best_utility(view, job, memory) / job.gpus for job in view.jobs}
        in_order = sorted(view.jobs, key=lambda job: (-best[job.job_id], job.submit_s, job.job_id))
        return [job.job_id for job in in_order]

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        prices = self.prices(view, memory)
        jobs = [view.job_by_id[job_id] for job_id in ranked]
        free = {node.node_id: node.gpus for node in view.nodes}
        head = jobs[: self.exact_jobs]
        _, chosen = self.best_choice(view, head, free, prices, memory, {})
        for placement in chosen.values():
            take(free, placement)
        for job in jobs[self.exact_jobs :]:
            offer = self.best_offer(view, job, free, prices, memory)
            if offer is not None and offer.payoff > 0.0:
                take(free, offer.placement)
                chosen[job.job_id] = offer.placement
        for job in jobs:
            offer = self.best_offer(view, job, free, prices, memory)
            if job.job_id not in chosen and offer is not None:
                take(free, offer.placement)
                chosen[job.job_id] = offer.placement
        memory["chosen"] = {job_id: [list(part) for part in own] for job_id, own in chosen.items()}
        return {
            job_id: Allotment(view.node_by_id[own[0][0]].gpu_type, gpus_of(own))
            for job_id, own in chosen.items()
        }

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        chosen = memory["chosen"]
        return {
            job_id: tuple((node, gpus) for node, gpus in chosen[job_id]) for job_id in allotments
        }

    def best_choice(
        self,
        view: ClusterView,
        jobs: Sequence[CandidateJob],
        free: FreeGpus,
        prices: Prices,
        memory: Memory,
        known: dict[tuple[int, tuple[int, ...]], Best],
    ) -> Best:
        """Return the largest sum of payoffs and the placements of the jobs that are taken."""
        if not jobs or not any(free.values()):
            return 0.0, {}
        key = len(jobs), tuple(free.values())
        if key not in known:
            job, rest = jobs[0], jobs[1:]
            known[key] = self.best_choice(view, rest, free, prices, memory, known)
            offer = self.best_offer(view, job, free, prices, memory)
            if offer is not None and offer.payoff > 0.0:
                left = dict(free)
                take(left, offer.placement)
                total, placed = self.best_choice(view, rest, left, prices, memory, known)
                if total + offer.payoff >= known[key][0]:
                    known[key] = total + offer.payoff, {job.job_id: offer.placement, **placed}
        return known[key]

    def best_offer(
        self, view: ClusterView, job: CandidateJob, free: FreeGpus, prices: Prices, memory: Memory
    ) -> Offer | None:
        """Return the placement with the largest payoff; of equal ones the present one."""
        best: Offer | None = None
        for placement in placements_of(view, job, free):
            utility = self.utility(view, job, footprint_of(placement, view.node_by_id), memory)
            cost = sum(
                gpus * price_of(view, node, free, prices) for node, gpus in placement
            ) + SPREAD_COST * utility * (len(placement) > 1)
            if utility > 0.0 and (best is None or utility - cost > best.payoff):
                best = Offer(placement, utility - cost)
        return best

    def utility(
        self, view: ClusterView, job: CandidateJob, footprint: Footprint, memory: Memory
    ) -> float:
        """Return the work in seconds on the fastest type, over the time from arrival to end."""
        rate, fastest = rate_of(job, footprint), fastest_rate(view, job)
        if not rate or not fastest:
            return 0.0
        left, total = memory["work"].get(job.job_id, [FIRST_GUESS_S * fastest] * 2)
        life_s = view.now_s - job.submit_s + left / rate
        return float(total / fastest / max(life_s, 1e-9))

    def best_utility(self, view: ClusterView, job: CandidateJob, memory: Memory) -> float:
        footprints = [Footprint(name, (job.gpus,), job.gpus) for name in view.gpus_of_type]
        usable = [own for own in footprints if job.may_use(own.gpu_type)]
        return max((self.utility(view, job, own, memory) for own in usable), default=0.0)

    def prices(self, view: ClusterView, memory: Memory) -> Prices:
        """Return the bounds of prices: the largest utility of a GPU, and a part of the least."""
        utilities = [self.best_utility(view, job, memory) / job.gpus for job in view.jobs]
        known = [own for own in utilities if own > 0.0] or [1.0]
        high, low = max(known), min(known) / (4.0 * ETA)
        return Prices(dict.fromkeys(view.gpus_of_type, low), dict.fromkeys(view.gpus_of_type, high))


def placements_of(view: ClusterView, job: CandidateJob, free: FreeGpus) -> Iterator[Placement]:
    """Yield the present placement, one on each node, and by speed one over the free GPUs of the
    fastest types, of one type and, where the view allows it, of several.
    """
    held = job.placement
    if held and all(free[node] >= gpus for node, gpus in held):
        yield held
    if job.gpus <= 0:
        return
    for node, count in free.items():
        if count >= job.gpus and rate_on(view, job, node):
            yield ((node, job.gpus),)
    for nodes in pools_of(view, job, free):
        if sum(free[node] for node in nodes) >= job.gpus:
            yield fullest(nodes, free, job.gpus)


def pools_of(view: ClusterView, job: CandidateJob, free: FreeGpus) -> Iterator[list[str]]:
    """Yield the nodes that a spread gang takes first to last: of each type, then of all types."""
    by_type: dict[str, list[str]] = {}
    for node, count in free.items():
        if count and rate_on(view, job, node):
            by_type.setdefault(view.node_by_id[node].gpu_type, []).append(node)
    for nodes in by_type.values():
        nodes.sort(key=lambda node: -free[node])
        yield nodes
    if view.mixes_types and len(by_type) > 1:
        speed = {name: rate_on(view, job, nodes[0]) or 0.0 for name, nodes in by_type.items()}
        yield [node for name in sorted(by_type, key=lambda n: -speed[n]) for node in by_type[name]]


def fullest(nodes: Sequence[str], free: FreeGpus, gpus: int) -> Placement:
    taken: list[tuple[str, int]] = []
    left = gpus
    for node in nodes:
        count = min(left, free[node])
        if count:
            taken.append((node, count))
            left -= count
    return tuple(taken)


def rate_on(view: ClusterView, job: CandidateJob, node: str) -> float | None:
    """Return the rate of the gang on GPUs like those of the node; None where it may not run."""
    gpu_type = view.node_by_id[node].gpu_type
    if not job.may_use(gpu_type):
        return None
    return rate_of(job, Footprint(gpu_type, (job.gpus,), job.gpus))


def rate_of(job: CandidateJob, footprint: Footprint) -> float | None:
    """Return the measured rate; that side by side where the spread one is unknown, 1 if none is."""
    table = job.estimates.rates
    if table is None:
        return 1.0
    rate = table.rate(footprint)
    return slowest_rate(table.consolidated, footprint) if rate is None else rate


def fastest_rate(view: ClusterView, job: CandidateJob) -> float | None:
    rates = [
        rate_of(job, Footprint(name, (job.gpus,), job.gpus)) or 0.0
        for name in view.gpus_of_type
        if job.may_use(name)
    ]
    return max(rates, default=0.0) or None


def price_of(view: ClusterView, node: str, free: FreeGpus, prices: Prices) -> float:
    own = view.node_by_id[node]
    return prices.of(own.gpu_type, own.gpus - free[node], own.gpus)


def note_work(view: ClusterView, memory: Memory) -> None:
    """Note the work left of each job, and what it was when the job came."""
    earlier = memory.get("work", {})
    memory["work"] = {}
    for job in view.jobs:
        left = job.estimates.work_left
        if left is not None:
            memory["work"][job.job_id] = [left, earlier.get(job.job_id, [left, left])[1]]
