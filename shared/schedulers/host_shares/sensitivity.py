"""The speed of a job by its cores and memory per GPU, and the least of both that it needs."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

SATURATED = 0.999
"""Part of the highest speed from which more cores or memory count as useless."""


class PerGpu(NamedTuple):
    """Cores and memory beside one GPU, in whole numbers."""

    cpu_milli: int
    mem_mib: int

    def exceeds(self, other: PerGpu) -> bool:
        """Return whether it is more in cores or in memory."""
        return self.cpu_milli > other.cpu_milli or self.mem_mib > other.mem_mib


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Measured speeds of a job: `speed[c][m]` with `cpu_milli[c]` and `mem_mib[m]` per GPU.

    Speeds are relative to the proportional share of a node; both axes ascend.
    """

    cpu_milli: tuple[int, ...]
    mem_mib: tuple[int, ...]
    speed: tuple[tuple[float, ...], ...]

    def speed_with(self, share: PerGpu) -> float:
        """Return the speed of the largest measured point within the share; 0 below all."""
        cpu = bisect_right(self.cpu_milli, share.cpu_milli) - 1
        mem = bisect_right(self.mem_mib, share.mem_mib) - 1
        return self.speed[cpu][mem] if cpu >= 0 and mem >= 0 else 0.0

    def saturating(self) -> PerGpu:
        """Return the fewest cores, and with these the least memory, that reach full speed."""
        full = SATURATED * max(map(max, self.speed))
        points = (
            PerGpu(cpu, mem)
            for cpu, row in zip(self.cpu_milli, self.speed, strict=True)
            for mem, speed in zip(self.mem_mib, row, strict=True)
            if speed >= full
        )
        return min(points)
