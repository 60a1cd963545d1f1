"""Waits for closer GPUs: as long as jobs of the same size have waited for them before.

Delay scheduling of Dally (Sharma et al., arXiv 2401.16492): a job declines GPUs on a farther tier
until it has waited for the closer one for a time, which is tuned by the waits that ended there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from shared.performance.links import LinkTier
from shared.schedulers.hooks import Memory


@dataclass(frozen=True, slots=True)
class TimerRules:
    """Timers are the mean of the waits in a window and so many deviations, between bounds, s.

    Without a wait in the window a timer is `first_s`. A wait leaves the window after `expiry_s`.
    """

    first_s: float
    longest_s: float
    window: int = 50
    expiry_s: float = 24 * 3600.0
    deviations: float = 2.0

    def timer_s(self, waits: Sequence[Sequence[float]], now_s: float) -> float:
        """Return the timer of a tier by its waits, [end, wait] each, s."""
        recent = [wait for at_s, wait in waits if now_s - at_s <= self.expiry_s]
        if not recent:
            return self.first_s
        return min(fmean(recent) + self.deviations * pstdev(recent), self.longest_s)


class DelayTimers:
    """Timers by tier and number of GPUs, over the waits that a scheduler's memory keeps."""

    def __init__(self, rules: TimerRules, memory: Memory, now_s: float) -> None:
        self.rules = rules
        self.waits: dict[str, list[list[float]]] = memory.setdefault("waits", {})
        self.now_s = now_s

    def note(self, tier: LinkTier, gpus: int, wait_s: float, ended_s: float) -> None:
        """Note a wait that ended with GPUs on the tier."""
        own = self.waits.setdefault(_key(tier, gpus), [])
        own.append([ended_s, wait_s])
        del own[: -self.rules.window]

    def declines(self, offered: LinkTier, best: LinkTier, gpus: int, waited_s: float) -> bool:
        """Return whether a job that can have the tier `best` waits on rather than take the offer.

        It waits for each closer tier that it can have in turn.
        """
        closer = range(best, offered)
        return waited_s < sum(self.timer_s(LinkTier(tier), gpus) for tier in closer)

    def timer_s(self, tier: LinkTier, gpus: int) -> float:
        return self.rules.timer_s(self.waits.get(_key(tier, gpus), []), self.now_s)


def _key(tier: LinkTier, gpus: int) -> str:
    return f"{tier.name.lower()}:{gpus}"
