"""Gavel (Narayanan et al., OSDI'20): policies by effective throughput over types of GPUs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from shared.schedulers.exchange import exchanged
from shared.schedulers.hooks import Allotments, Decides, Memory, Need
from shared.schedulers.time_share_rounds import (
    Shares,
    TimeShareRounds,
    gangs_and_capacity,
    rates_of,
    shares_of,
    work_left,
)
from shared.schedulers.time_shares import Floats, TimeShares, isolated_rates, proportional_rates
from shared.schedulers.view import ClusterView

SOURCE = "Narayanan et al., OSDI'20"
FILLINGS = 8
"""Levels of water filling; what is left is shared for the largest sum."""
PRECISION = 1.01
"""Factor within which the least finish-time ratio is searched."""


class GavelMaxMin(TimeShareRounds):
    """Least attained service over types: the least job's share of what an equal part gives it."""

    name: ClassVar[str] = "gavel"
    source: ClassVar[str] = f"{SOURCE}, max-min fairness"
    needs: ClassVar[tuple[Need, ...]] = ("rates",)
    decides: ClassVar[tuple[Decides, ...]] = ("type", "share of time")
    fillings: ClassVar[int] = 1

    def shares(self, view: ClusterView, memory: Memory) -> Shares:
        if not view.jobs:
            return {}
        rates = rates_of(view, self.is_blind)
        gangs, capacity = gangs_and_capacity(view)
        weights = np.array([job.weight for job in view.jobs])
        equal = np.maximum(proportional_rates(rates, capacity), 1e-12)
        program = TimeShares(rates, gangs, capacity)
        return shares_of(view, program.max_min(gangs / (weights * equal), self.fillings))


class GavelBlind(GavelMaxMin):
    """The same without speeds: each type counts alike."""

    name: ClassVar[str] = "gavel_blind"
    source: ClassVar[str] = f"{SOURCE}, max-min fairness, heterogeneity-agnostic"
    needs: ClassVar[tuple[Need, ...]] = ()
    is_blind: ClassVar[bool] = True


class GavelWaterFilling(GavelMaxMin):
    """Max-min fairness level by level: a job above the least one gets its fair level too."""

    name: ClassVar[str] = "gavel_water_filling"
    source: ClassVar[str] = f"{SOURCE}, max-min fairness with water filling"
    fillings: ClassVar[int] = FILLINGS


class GavelExchange(GavelMaxMin):
    """Max-min fairness, whose rounds give the jobs that run the types on which they are fastest.

    The shares decide who runs, as before; that types are exchanged then is not of the publication.
    """

    name: ClassVar[str] = "gavel_exchange"
    source: ClassVar[str] = f"{SOURCE}, max-min fairness; types are exchanged in a round"

    def realise(self, view: ClusterView, memory: Memory) -> Allotments:
        allotted = exchanged(view, super().realise(view, memory))
        memory["last"] = {job_id: own.gpu_type for job_id, own in allotted.items()}
        return allotted


class GavelMakespan(TimeShareRounds):
    """All jobs end together, as early as possible."""

    name: ClassVar[str] = "gavel_makespan"
    source: ClassVar[str] = f"{SOURCE}, makespan"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("type", "share of time")

    def shares(self, view: ClusterView, memory: Memory) -> Shares:
        if not view.jobs:
            return {}
        gangs, capacity = gangs_and_capacity(view)
        program = TimeShares(rates_of(view), gangs, capacity)
        return shares_of(view, program.max_min(1.0 / np.maximum(lefts_of(view), 1e-9)))


class GavelFinishTime(TimeShareRounds):
    """The largest ratio of a job's end to its end with 1/n of the cluster is least (Themis' rho).

    The part of the work that is done counts with the time that it would have taken alone.
    """

    name: ClassVar[str] = "gavel_finish_time"
    source: ClassVar[str] = f"{SOURCE}, finish-time fairness"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("type", "share of time")

    def shares(self, view: ClusterView, memory: Memory) -> Shares:
        if not view.jobs:
            return {}
        rates = rates_of(view)
        gangs, capacity = gangs_and_capacity(view)
        left = lefts_of(view)
        alone = np.maximum(isolated_rates(rates, gangs, capacity), 1e-12)
        done_s = note_isolated(view, left, alone, memory)
        elapsed_s = np.array([view.now_s - job.submit_s for job in view.jobs])
        isolated_s = np.maximum(done_s + left / alone, 1e-9)
        return shares_of(view, least_ratio(rates, gangs, capacity, left, elapsed_s, isolated_s))


class GavelCost(TimeShareRounds):
    """The largest sum of rate per price; without prices that of rates."""

    name: ClassVar[str] = "gavel_cost"
    source: ClassVar[str] = f"{SOURCE}, throughput per cost"
    needs: ClassVar[tuple[Need, ...]] = ("rates",)
    decides: ClassVar[tuple[Decides, ...]] = ("type", "share of time")

    def shares(self, view: ClusterView, memory: Memory) -> Shares:
        if not view.jobs:
            return {}
        rates = rates_of(view)
        gangs, capacity = gangs_and_capacity(view)
        price = {node.gpu_type: node.usd_per_gpu_h or 1.0 for node in view.nodes}
        prices = np.array([price[name] for name in view.gpus_of_type])
        return shares_of(view, TimeShares(rates, gangs, capacity).most(rates / prices))


def lefts_of(view: ClusterView) -> Floats:
    """Return the work left of each job; where it is unknown, that of the median job."""
    known = work_left(view.jobs)
    usual = float(np.median(list(known.values()))) if known else 1.0
    return np.array([known.get(job.job_id, usual) for job in view.jobs])


def note_isolated(view: ClusterView, left: Floats, alone: Floats, memory: Memory) -> Floats:
    """Return the seconds that the work done so far would have taken with 1/n of the cluster."""
    earlier = memory.get("isolated", {})
    noted, done_s = {}, []
    for job, remaining, rate in zip(view.jobs, left.tolist(), alone.tolist(), strict=True):
        before = earlier.get(job.job_id)
        so_far_s = 0.0 if before is None else before[0] + (before[1] - remaining) / before[2]
        noted[job.job_id] = [so_far_s, remaining, rate]
        done_s.append(so_far_s)
    memory["isolated"] = noted
    return np.array(done_s)


def least_ratio(
    rates: Floats,
    gangs: Floats,
    capacity: Floats,
    left: Floats,
    elapsed_s: Floats,
    isolated_s: Floats,
) -> Floats:
    """Return the shares of the least ratio that all jobs can have, by bisection."""
    low = float((elapsed_s / isolated_s).max())
    high = 2.0 * max(low, 1.0)
    best: Floats | None = None
    while best is None or high > low * PRECISION + 1e-3:
        ratio = high if best is None else (low + high) / 2
        needed = left / np.maximum(ratio * isolated_s - elapsed_s, 1e-9)
        shares = TimeShares(rates, gangs, capacity).max_min(1.0 / np.maximum(needed, 1e-12))
        reached = (rates * shares).sum(axis=1)
        if (reached >= needed * (1.0 - 1e-6))[rates.max(axis=1) > 0].all():
            best, high = shares, ratio
        elif best is None:
            low, high = high, high * 2.0
            if high > 1e9:
                return shares
        else:
            low = ratio
    return best
