"""The share of starts that intervals leave outside, moved until that many do fall outside.

Quantiles of past errors hold their claim where starts are independent. Those of a burst are not:
the errors that teach count hours with few jobs as much as hours with hundreds, so the intervals
hold in as many hours as claimed and still for too many jobs, or too few. Adaptive conformal
inference (Gibbs and Candes 2021) closes that gap: each start within its interval lets a little
more fall outside, each start outside of it less, on the scale of log-odds, and within bounds, so
that one burst of many jobs moves it to a bound and not beyond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from services.priority.core.history.coverage import CLAIMED

STEP = 0.02
"""Log-odds that a start outside of its interval would move the share by, were none expected."""
FARTHEST = 2.0
"""Log-odds that the share moves at most: each side leaves out 1.5 to 45 % instead of 10 %."""
LOG_ODDS = math.log((1.0 - CLAIMED) / (1.0 + CLAIMED))
"""The same of a side that leaves out what is claimed."""


@dataclass(slots=True)
class OutsideShare:
    """The share that lies outside of the intervals of a pool, half of it on each side."""

    moved: float = 0.0
    """Log-odds away from the claim."""

    def judge(self, is_inside: bool) -> None:
        """Note whether a job started within its interval."""
        moved = self.moved + STEP * (float(is_inside) - CLAIMED)
        self.moved = max(-FARTHEST, min(FARTHEST, moved))

    def levels(self) -> tuple[float, float, float]:
        """Return the levels of the low, middle and high quantile."""
        side = 1.0 / (1.0 + math.exp(-LOG_ODDS - self.moved))
        return side, 0.5, 1.0 - side
