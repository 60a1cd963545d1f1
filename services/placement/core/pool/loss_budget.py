"""The loss budget of a pool: the share of its GPU time that stops by rank and migrations may cost.

It is a bucket: GPU time in use earns `loss_share` of itself, up to that share of all GPUs over
`loss_window_s`; a stop takes the work that it loses and the restart after it, times the gang's
GPUs. The account holds what is spent and not yet earned back. All are whole numbers, in thousandths
of a GPU times ms times 1 / `SHARES`, so that a replay, a rebuild and the compiled kernel agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SHARES = 10_000
"""A share is a whole number of 1 / so much."""
MILLI = 1000


def share_of(loss_share: float) -> int:
    """Return a share of GPU time as a whole number of 1 / `SHARES`."""
    return round(loss_share * SHARES)


def budget_of(share: int, capacity_milli: int, window_ms: int) -> int:
    """Return the most that may be spent at a time; 0 where the share is all: nothing is bounded."""
    return 0 if share >= SHARES else share * capacity_milli * window_ms


def earn(spent: int, share: int, used_milli: int, elapsed_ms: int) -> int:
    """Return what is still spent after GPUs were in use for so long."""
    return max(0, spent - share * used_milli * elapsed_ms) if spent > 0 else 0


def cost_of(gang_milli: int, lost_ms: int) -> int:
    """Return what a stop takes."""
    return gang_milli * lost_ms * SHARES


def is_paused(spent: int, share: int, budget: int) -> bool:
    """Return whether the budget is spent, so that rank stops and migrates no job."""
    return share < SHARES and spent >= budget


def earned_after_ms(spent: int, share: int, budget: int, used_milli: int) -> int | None:
    """Return the ms until the spent budget is open again at this use; None: it earns nothing."""
    rate = share * used_milli
    return (spent - budget) // rate + 1 if rate > 0 else None


def fill_of(spent: int, share: int, budget: int) -> float:
    """Return the share of the budget that is left, in [0, 1]."""
    if share >= SHARES or budget <= 0:
        return 1.0
    return max(0.0, float(budget - spent) / float(budget))


class LossBudget(NamedTuple):
    """The loss budget of a pool at one moment."""

    now: int
    """ms"""
    spent: int
    share: int
    budget: int
    used_milli: int
    """GPUs in use, in thousandths."""

    @property
    def is_paused(self) -> bool:
        """Return whether it is spent, so that rank stops and migrates no job."""
        return is_paused(self.spent, self.share, self.budget)

    @property
    def fill(self) -> float:
        """The share of it that is left, in [0, 1]."""
        return fill_of(self.spent, self.share, self.budget)

    @property
    def opens_at_ms(self) -> int | None:
        """The ms when stops are paid for again at the present use; None: not foreseeable."""
        wait_ms = earned_after_ms(self.spent, self.share, self.budget, self.used_milli)
        return None if wait_ms is None else self.now + max(0, wait_ms)


@dataclass(slots=True)
class LossAccount:
    """The cost of a pool's stops, folded from events alone."""

    spent: int = 0
    at: int = 0
    """ms up to which GPU time was earned."""
    used_milli: int = 0
    """GPUs in use, in thousandths."""
    is_reported: bool = False
    """The present pause was published."""

    def spent_at(self, now: int, share: int) -> int:
        """Return what is still spent at `now` ms."""
        return earn(self.spent, share, self.used_milli, max(0, now - self.at))

    def settle(self, now: int, share: int) -> None:
        """Earn the GPU time up to `now` ms."""
        self.spent = self.spent_at(now, share)
        self.at = max(now, self.at)

    def use(self, now: int, milli: int, share: int) -> None:
        """Count that many thousandths of a GPU more as in use from `now` on; fewer if negative."""
        self.settle(now, share)
        self.used_milli += milli

    def charge(self, now: int, gang_milli: int, lost_ms: int, share: int) -> None:
        """Take the cost of a stop at `now`."""
        self.settle(now, share)
        self.spent += cost_of(gang_milli, lost_ms)
        self.is_reported = False
