"""Error of the run-time predictor over the jobs that ended; old ones fade."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

FADE = 1000.0
"""Jobs after which an old one counts 1/e."""


@dataclass(slots=True)
class Accuracy:
    """Faded sums over jobs that ended: their errors, and their number."""

    samples: int = 0
    weight: float = 0.0
    error: float = 0.0
    bias: float = 0.0
    inside: float = 0.0
    _terms: dict[str, float] | None = field(default=None, compare=False, repr=False)
    """Result of `terms` until the next job."""

    def add(self, p10_s: float, p50_s: float, p90_s: float, ran_s: float) -> None:
        """Add a job: the quantiles at its entry, and its run time."""
        error = math.log10(max(p50_s, 1.0) / max(ran_s, 1.0))
        keep = 1.0 - 1.0 / FADE
        self._terms = None
        self.samples += 1
        self.weight = self.weight * keep + 1.0
        self.error = self.error * keep + abs(error)
        self.bias = self.bias * keep + error
        self.inside = self.inside * keep + (1.0 if p10_s <= ran_s <= p90_s else 0.0)

    def terms(self) -> dict[str, float]:
        """Return the mean of |log10(p50 / truth)|, the bias, and the share within p10 and p90."""
        if not self.samples:
            return {}
        if self._terms is None:
            self._terms = {
                "estimate.samples": float(self.samples),
                "estimate.error_log10_p50": round(self.error / self.weight, 4),
                "estimate.bias_log10_p50": round(self.bias / self.weight, 4),
                "estimate.within_p10_p90": round(self.inside / self.weight, 4),
            }
        return self._terms
