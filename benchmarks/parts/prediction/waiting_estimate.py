"""An estimate of a replay whose job has not started yet."""

from __future__ import annotations

from dataclasses import dataclass

from services.priority.core.history.start_calibration import StartCalibration, StartInterval


@dataclass(frozen=True, slots=True, order=True)
class WaitingEstimate:
    """Times in s; the soonest start comes first."""

    start_s: float
    at_s: float
    simulated: StartInterval
    interval: StartInterval
    teaches: bool
    learnt: int
    """Starts that the calibration had learnt from when it was made."""

    @property
    def delay_s(self) -> float:
        return self.start_s - self.at_s

    def settle(self, calibration: StartCalibration) -> None:
        """Learn from the start as `OpenEstimates.start` does."""
        if self.teaches:
            calibration.learn(self.simulated, self.delay_s)
        calibration.outside.judge(self.interval.p10_s <= self.delay_s <= self.interval.p90_s)
