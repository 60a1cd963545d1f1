"""Share of the jobs that ended within the interval given to them, and whether it has drifted.

The share fades over the last jobs. Below or above the band the intervals have drifted, until the
share is near the claim again: the two limits differ, so that a share at the edge is reported once.
"""

from __future__ import annotations

from dataclasses import dataclass

CLAIMED = 0.8
"""Share of jobs between p10 and p90."""
FADE = 500.0
"""Jobs after which an old one counts 1/e."""
LEAST_SAMPLES = 500
"""Jobs before which the share says nothing."""
DRIFTED_BY, RECOVERED_BY = 0.1, 0.05
"""Distance of the share from the claim at which the intervals have drifted, and recovered."""


@dataclass(slots=True)
class Coverage:
    """Faded share of the jobs within their interval; `drifted` follows the events."""

    samples: int = 0
    weight: float = 0.0
    inside: float = 0.0
    drifted: bool = False

    def add(self, is_inside: bool) -> None:
        keep = 1.0 - 1.0 / FADE
        self.samples += 1
        self.weight = self.weight * keep + 1.0
        self.inside = self.inside * keep + (1.0 if is_inside else 0.0)

    @property
    def share(self) -> float:
        return self.inside / self.weight if self.weight else CLAIMED

    def terms(self) -> dict[str, float]:
        """Return the share and the number of jobs, once there are enough of them."""
        if self.samples < LEAST_SAMPLES:
            return {}
        return {
            "interval.samples": float(self.samples),
            "interval.coverage": round(self.share, 4),
            "interval.drifted": float(self.drifted),
        }

    def find_change(self) -> bool | None:
        """Return whether the intervals have drifted, if that is news; else None."""
        distance = abs(self.share - CLAIMED)
        if self.samples < LEAST_SAMPLES:
            return None
        if not self.drifted and distance > DRIFTED_BY:
            return True
        return False if self.drifted and distance < RECOVERED_BY else None
