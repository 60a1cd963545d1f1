"""The cause of a job that became slow as a whole, by own work and waiting of its ranks. Pure.

In synchronous training every rank waits for the slowest. If all ranks wait longer than before and
no own work has grown, the communication itself is slow. If the own work of all has grown,
they compute more slowly; if that of one has, this one does. Else the cause stays unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from services.failslow.core.diagnosis.cohorts import Coordinates, groups_of
from services.failslow.core.diagnosis.layout import Group, peers
from services.failslow.core.diagnosis.suspects import LEAST_PEERS, suspicious_groups
from services.failslow.core.diagnosis.verdict import Diagnosis

REMEMBERED = 64
EXPLAINS = 0.5
"""Part of the growth of an iteration from which a quantity explains it."""
LITTLE = 0.25
COMM = "comm."
NOT_REPORTED = "own work and waiting of its ranks are not reported"
NEITHER = "neither own work nor waiting explains the longer iterations"


@dataclass(frozen=True, slots=True)
class RankSample:
    """Medians of one report, s; `step` is that of its last iteration."""

    step: int
    own_s: float
    wait_s: float
    comm_s: Mapping[str, float] = field(default_factory=dict)
    delay_s: float = 0.0
    """Of own work: waiting for a processor of the host."""


@dataclass(slots=True)
class RankTimes:
    """The newest reports of a rank, the oldest first, and its place in the layout."""

    samples: deque[RankSample] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    layout: Coordinates = field(default_factory=dict)

    def growth(self, since_step: int) -> tuple[float, float, float] | None:
        """Return by how many s own work, waiting for ranks and waiting for processors grew.

        None without reports on both sides.
        """
        before = [sample for sample in self.samples if sample.step < since_step]
        after = [sample for sample in self.samples if sample.step >= since_step]
        if not (before and after):
            return None
        own_s = median(s.own_s for s in after) - median(s.own_s for s in before)
        delay_s = median(s.delay_s for s in after) - median(s.delay_s for s in before)
        wait_s = median(s.wait_s for s in after) - median(s.wait_s for s in before)
        return own_s, wait_s, delay_s


def cause_of_job(ranks: Mapping[int, RankTimes], since_step: int, grown_s: float) -> Diagnosis:
    """Return why iterations take `grown_s` longer since a step."""
    growths = {rank: times.growth(since_step) for rank, times in ranks.items()}
    known = {rank: growth for rank, growth in growths.items() if growth is not None}
    if not known or grown_s <= 0:
        return Diagnosis("unknown", (), 0.0, (NOT_REPORTED,))
    own = {rank: own_s / grown_s for rank, (own_s, _, _) in known.items()}
    wait = min(wait_s / grown_s for _, wait_s, _ in known.values())
    late = median(delay_s / grown_s for _, _, delay_s in known.values())
    usual, most = median(own.values()), max(own, key=lambda rank: own[rank])
    if len(own) > 1 and wait >= EXPLAINS and own[most] <= LITTLE:
        text = f"each of {len(own)} ranks waits longer, by {wait:.0%} of the growth or more"
        confidence = min(wait, 1.0) - max(own[most], 0.0)
        return Diagnosis("communication", (), confidence, (text, *_groups(ranks, since_step)))
    if usual >= EXPLAINS:
        text = f"own work of {len(own)} ranks grew by {usual:.0%} of the growth in the median"
        if len(own) == 1:
            text = f"own work of its one rank grew by {usual:.0%} of the growth"
        return Diagnosis("compute", (), min(usual, 1.0) * EXPLAINS, (text, *_busy_hosts(late)))
    if own[most] >= EXPLAINS:
        text = f"own work of rank {most} alone grew, by {own[most]:.0%} of the growth"
        return Diagnosis("compute", (), min(own[most], 1.0) * EXPLAINS, (text,))
    return Diagnosis("unknown", (), 0.0, (NEITHER,))


def _busy_hosts(late: float) -> tuple[str, ...]:
    """Return a sentence where waiting for processors explains a part of the growth."""
    if late < LITTLE:
        return ()
    return (f"waiting for processors grew by {late:.0%} of the growth: the hosts are busy",)


def _groups(ranks: Mapping[int, RankTimes], since_step: int) -> tuple[str, ...]:
    """Return a sentence per group that communicates more slowly than those of the same place."""
    times_s: dict[Group, float] = {}
    for group in groups_of({rank: times.layout for rank, times in ranks.items()}):
        values = [
            sample.comm_s[COMM + group.axis]
            for rank in group.ranks
            for sample in ranks[rank].samples
            if sample.step >= since_step and COMM + group.axis in sample.comm_s
        ]
        if values:
            times_s[group] = median(values)
    enough = {g: s for g, s in times_s.items() if len(peers(tuple(times_s), g)) >= LEAST_PEERS}
    return tuple(
        f"{group.axis} group of ranks {', '.join(map(str, group.ranks))}: {enough[group]:.3g} s,"
        " 1.2 times the median of its peers or more"
        for group in suspicious_groups(enough)
    )
