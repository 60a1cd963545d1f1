"""A seeded workload after a `Profile`: users who submit the same named job again and again.

Users arrive by the hours of the day (a Poisson process) and submit a burst of one named job; the
next time they repeat one of their latest names, or make a new one, which may belong to an earlier
family of theirs ("unet-3-v2"). The GPUs belong to the name. A run time is a sum of three normal
parts, of the family, the name and the single run, mapped through the published quantiles of its
size: single durations keep the published distribution, and history is informative.

Only `Random.random` is drawn, which Python keeps stable: a seed gives the same jobs everywhere, and
fewer jobs of a seed are a prefix of more.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from random import Random
from statistics import NormalDist

from simulator.workload.arrivals import START_S, arrivals_s
from simulator.workload.profiles import LEVELS, Profile
from simulator.workload.rows import UNKNOWN_CPUS, UNKNOWN_MEM_GIB, WorkloadJob, make_gang

USERS_PER_TENANT = 24
"""Their jobs fall with their rank, as those of users do in all the cited traces."""

REPEATS = 0.6
"""Share of bursts that repeat a name: 78 to 94 % of all jobs have had their name before."""

LATEST = 4
"""Latest names that a user repeats."""

SAME_FAMILY = 0.6
"""Share of new names that belong to a family of the user's."""

FAMILY_PART, NAME_PART, RUN_PART = 0.35, 0.40, 0.25
"""Shares of the variance of a duration, on the normal scale; they sum to 1. No public data set has
names and durations of its users at once: assumed."""

GUESS_SIGMAS = 1.0
WALLTIMES_S = tuple(3600.0 * hours for hours in (0.5, 1, 2, 4, 8, 12, 24, 48, 96, 168, 336, 672))
"""Requested walltimes: the next round figure above the usual need of the name, one standard
deviation up, and never less than the run. Assumed, after the archives of batch systems, in which
estimates are few round figures and mostly far too long (Mu'alem and Feitelson, TPDS 2001).
"""

WORDS = ("bert", "resnet", "unet", "gpt", "vit", "dlrm", "wav2vec", "gan", "yolo", "moe")

OUTCOMES = (True, False, None)

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class _Name:
    """A named job: `level` is the normal part that all its runs share."""

    text: str
    gpus: float
    level: float


@dataclass(slots=True)
class _User:
    """A user with the words and levels of its `families`, and its names."""

    tenant: str
    name: str
    families: list[tuple[str, float]] = field(default_factory=list)
    names: list[_Name] = field(default_factory=list)


class _Chance:
    """Random draws of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def share(self) -> float:
        return self._random.random()

    def exponential(self, mean: float) -> float:
        return -mean * math.log(1 - self.share())

    def normal(self) -> float:
        return _NORMAL.inv_cdf(min(max(self.share(), 1e-12), 1 - 1e-12))

    def count(self, mean: float) -> int:
        """Geometric, at least 1."""
        if mean <= 1:
            return 1
        return 1 + int(math.log(1 - self.share()) / math.log(1 - 1 / mean))

    def pick(self, up_to: Sequence[float]) -> int:
        """An index, by cumulated weights."""
        return bisect_right(up_to, self.share() * up_to[-1], 0, len(up_to) - 1)


def generate_campaigns(
    profile: Profile, jobs: int, seed: int, tenants: Sequence[str]
) -> list[WorkloadJob]:
    """Generate `jobs` jobs by time; `tenants` get the profile's shares in their order.

    Time counts from nine in the morning of the first day.
    """
    if not tenants:
        raise ValueError("a workload needs at least one tenant")
    submits = _by_time(_bursts(_Chance(seed), profile, _users(profile, tenants)))
    return [
        _job(profile, f"synthetic-{seed}-{number}", submit)
        for number, submit in enumerate(islice(submits, jobs))
    ]


def duration_s(profile: Profile, gpus: float, normal: float) -> float:
    """Return the duration at the normal value's quantile of the jobs of this size."""
    sizes = [size_class.gpus for size_class in profile.classes]
    index = min(bisect_left(sizes, gpus), len(sizes) - 1)
    quantiles_s = profile.classes[index].quantiles_s
    share = _NORMAL.cdf(normal)
    upper = min(bisect_right(LEVELS, share), len(LEVELS) - 1)
    low, high = math.log(quantiles_s[upper - 1]), math.log(quantiles_s[upper])
    part = (share - LEVELS[upper - 1]) / (LEVELS[upper] - LEVELS[upper - 1])
    return math.exp(low + part * (high - low))


@dataclass(frozen=True, slots=True, order=True)
class _Submit:
    submit_s: float
    order: int
    user: _User = field(compare=False)
    name: _Name = field(compare=False)
    run: float = field(compare=False)
    succeeded: bool | None = field(compare=False)


def _users(profile: Profile, tenants: Sequence[str]) -> list[tuple[float, _User]]:
    """Return each user with the cumulated weight up to it."""
    shares = [*profile.tenants, *[profile.tenants[-1]] * len(tenants)]
    ranks = [1 / (rank + 1) for rank in range(USERS_PER_TENANT)]
    weights = [
        (share * rank, _User(tenant, f"u{number}-{place}"))
        for number, (share, tenant) in enumerate(zip(shares, tenants, strict=False))
        for place, rank in enumerate(ranks)
    ]
    up_to = accumulate(weight for weight, _ in weights)
    return [(total, user) for total, (_, user) in zip(up_to, weights, strict=True)]


def _bursts(
    chance: _Chance, profile: Profile, users: Sequence[tuple[float, _User]]
) -> Iterator[list[_Submit]]:
    up_to = [weight for weight, _ in users]
    sizes = list(accumulate(count for _, count in profile.sizes))
    ends = list(accumulate(profile.outcomes))
    order = 0
    every_s = profile.mean_gap_s * profile.burst
    for start_s in arrivals_s(lambda: chance.exponential(1.0), profile.hours, every_s):
        user = users[chance.pick(up_to)][1]
        name = _name(chance, profile, sizes, user)
        burst = []
        at_s = start_s
        for _ in range(chance.count(profile.burst)):
            succeeded = OUTCOMES[chance.pick(ends)]
            burst.append(_Submit(at_s, order, user, name, chance.normal(), succeeded))
            at_s += chance.exponential(profile.burst_gap_s)
            order += 1
        yield burst


def _name(chance: _Chance, profile: Profile, sizes: Sequence[float], user: _User) -> _Name:
    if user.names and chance.share() < REPEATS:
        latest = user.names[-LATEST:]
        return latest[int(chance.share() * len(latest))]
    if user.families and chance.share() < SAME_FAMILY:
        word, level = user.families[int(chance.share() * len(user.families))]
    else:
        kind = WORDS[int(chance.share() * len(WORDS))]
        word, level = f"{kind}-{len(user.families)}", chance.normal()
        user.families.append((word, level))
    own = math.sqrt(FAMILY_PART) * level + math.sqrt(NAME_PART) * chance.normal()
    gpus = profile.sizes[chance.pick(sizes)][0]
    named = _Name(f"{word}-v{len(user.names)}", gpus, own)
    user.names.append(named)
    return named


def _by_time(bursts: Iterator[list[_Submit]]) -> Iterator[_Submit]:
    """Bursts overlap: a submit is out once no later burst can come before it."""
    waiting: list[_Submit] = []
    for burst in bursts:
        while waiting and waiting[0] < burst[0]:
            yield heapq.heappop(waiting)
        for submit in burst:
            heapq.heappush(waiting, submit)


def _job(profile: Profile, key: str, submit: _Submit) -> WorkloadJob:
    name = submit.name
    run_s = duration_s(profile, name.gpus, name.level + math.sqrt(RUN_PART) * submit.run)
    usual_s = duration_s(profile, name.gpus, name.level + math.sqrt(RUN_PART) * GUESS_SIGMAS)
    shape = make_gang(name.gpus)
    return WorkloadJob(
        job_key=key,
        tenant=submit.user.tenant,
        user=submit.user.name,
        name=name.text,
        submit_s=round(submit.submit_s - START_S, 3),
        duration_s=round(run_s, 3),
        workers=shape.workers,
        gpus_per_worker=shape.gpus_per_worker,
        gpu_type=None,
        cpus=UNKNOWN_CPUS,
        mem_gib=UNKNOWN_MEM_GIB,
        succeeded=submit.succeeded,
        walltime_s=_walltime_s(max(run_s, usual_s)),
    )


def _walltime_s(needed_s: float) -> float:
    place = bisect_left(WALLTIMES_S, needed_s)
    return WALLTIMES_S[place] if place < len(WALLTIMES_S) else math.ceil(needed_s / 86400) * 86400.0
