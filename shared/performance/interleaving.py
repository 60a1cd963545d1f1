"""Iterations of jobs that share GPUs: stage by stage, each stage on another resource.

Muri (Zhao et al., SIGCOMM'22), section 4: an iteration loads data, preprocesses it, computes and
synchronises. In a group each job is a whole number of slots behind the first one, so that no two of
them use one resource at a time, and all wait for each other at the end of each slot.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

ROUNDS, MEASURED_ROUNDS = 8, 4
"""Iterations that are followed, and those at the end whose mean is the period."""


class Stage(NamedTuple):
    """Seconds on one resource; `slots` above 1 where several resources were measured as one."""

    seconds: float
    slots: int = 1


@dataclass(frozen=True, slots=True)
class StageProfile:
    """Seconds of an iteration alone on its GPUs, and its stages in their order."""

    iteration_s: float
    stages: tuple[Stage, ...]

    @property
    def slots(self) -> int:
        return sum(stage.slots for stage in self.stages)

    @property
    def busy_s(self) -> float:
        """Seconds of an iteration in which one of the resources is in use."""
        return sum(stage.seconds for stage in self.stages)


@dataclass(frozen=True, slots=True)
class GpuSharing:
    """Jobs that the same GPUs may have, and the factor by which contention makes so many slower.

    `slowdown` is by number of jobs, from one on; the last factor is that of all larger groups.
    """

    most_jobs: int = 1
    slowdown: tuple[float, ...] = (1.0,)

    def factor(self, jobs: int) -> float:
        return self.slowdown[min(jobs, len(self.slowdown)) - 1]


ALONE = GpuSharing()


def group_iteration_s(profiles: Sequence[StageProfile], sharing: GpuSharing) -> float | None:
    """Return the seconds in which each job of the group does an iteration, in the best order.

    None if the profiles have different numbers of slots, or the group more jobs than slots. A job
    alone takes what was measured.
    """
    if len(profiles) == 1:
        return profiles[0].iteration_s
    slots = {profile.slots for profile in profiles}
    if len(slots) > 1 or len(profiles) > slots.pop():
        return None
    ordered = tuple(sorted(profiles, key=lambda profile: (profile.iteration_s, profile.stages)))
    return best_period_s(ordered) * sharing.factor(len(profiles))


def efficiency(profiles: Sequence[StageProfile], iteration_s: float) -> float:
    """Return the part of the time of all resources in which a group uses them."""
    return sum(profile.busy_s for profile in profiles) / (profiles[0].slots * iteration_s)


def speed_in_group(
    own: StageProfile | None, others: Sequence[StageProfile | None], sharing: GpuSharing
) -> float:
    """Return the speed of a job beside others on its GPUs, relative to that alone.

    Where a profile is unknown, or they do not fit each other, the GPUs are shared by time slices.
    """
    if not others:
        return 1.0
    known = [profile for profile in (own, *others) if profile is not None]
    together_s = None
    if own is not None and len(known) == len(others) + 1:
        together_s = group_iteration_s(known, sharing)
    if own is None or not together_s:
        return 1.0 / (len(others) + 1)
    return own.iteration_s / together_s


@lru_cache(maxsize=65_536)
def best_period_s(profiles: tuple[StageProfile, ...]) -> float:
    """Return the least period over all offsets of the jobs behind the first."""
    slots = profiles[0].slots
    behind = itertools.permutations(range(1, slots), len(profiles) - 1)
    return min(period_s(profiles, (0, *offsets)) for offsets in behind)


def period_s(profiles: Sequence[StageProfile], offsets: Sequence[int]) -> float:
    """Return the seconds between two iterations with each job so many slots behind.

    With stages of one slot each it is the sum over slots of the longest stage in the slot.
    """
    slots = profiles[0].slots
    ending: list[list[Stage]] = [[] for _ in range(slots)]
    for profile, offset in zip(profiles, offsets, strict=True):
        for end, stage in _ends(profile):
            ending[(end + offset) % slots].append(stage)
    reached = [0.0]
    for slot in range(1, slots * ROUNDS + 1):
        ends = [
            reached[slot - stage.slots] + stage.seconds
            for stage in ending[slot % slots]
            if stage.slots <= slot
        ]
        reached.append(max(ends, default=reached[-1]))
    since = slots * (ROUNDS - MEASURED_ROUNDS)
    return (reached[-1] - reached[since]) / MEASURED_ROUNDS


def _ends(profile: StageProfile) -> Iterator[tuple[int, Stage]]:
    """Yield each stage with the slot at whose end it is done."""
    end = 0
    for stage in profile.stages:
        end += stage.slots
        yield end, stage
