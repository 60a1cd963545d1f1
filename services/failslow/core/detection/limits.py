"""Constants of the detection of slow jobs.

Levels and sizes are differences of the logarithm of seconds per unit of work, so 0.08 is 8 %.
They were chosen on the seeds 0 to 199 of `simulator/failslow/suite.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DetectionLimits:
    """Limits of the change-point model and of its verification."""

    hazard: float = 1 / 250
    """Probability that a run ends at an iteration; FALCON's reference value."""
    runs: int = 40
    """Tracked run lengths; the last one stands for all longer runs."""
    memory: float = 100.0
    """Iterations that the mean of the longest run remembers, so that it follows a drift."""
    shift_sd: float = 0.25
    """Standard deviation of a new run's level around the reference, before any data."""
    noise_weight: float = 6.0
    """Weight, in half observations, of the job's usual noise in the noise of a new run."""
    outliers: float = 0.02
    """Assumed share of isolated outliers."""
    outlier_density: float = 0.5
    """Density of an outlier per unit of the logarithm."""
    least_noise: float = 0.004
    """Least assumed standard deviation of an iteration."""

    history: int = 128
    """Remembered iterations of a job, without masked ones."""
    reference_gap: int = 8
    """Newest iterations that do not enter the reference level."""
    most_support: int = 40
    """Iterations after which a reference is replaced by one of the same age or younger."""
    least_reference: int = 10
    """Iterations before a job is judged."""

    probability: float = 0.5
    """Least probability of a run above the reference before it is verified."""
    size: float = 0.05
    """Least size of a slowdown."""
    score: float = 5.5
    """Least size of a slowdown in its standard errors."""
    longest: int = 64
    """Most iterations from onset to verification; what takes longer is a drift."""
    near: int = 40
    """Iterations right before the onset, above which a slowdown has to stand out as well."""
    near_score: float = 3.5
    near_share: float = 0.7
    """Least share of the size by which it is above them."""
    persistence: int = 6
    """Least slow iterations of a slowdown."""
    pause_size: float = 0.7
    """From this size on an excursion may be a pause, and has to last `pause_persistence`."""
    pause_persistence: int = 12
    agreement: float = 0.8
    """Least share of the iterations since the onset that are above half the slowdown."""

    recovery: float = 0.5
    """Largest share of the slowdown that remains after a recovery."""
    settle: int = 30
    """Iterations at a lower level before it becomes the reference; fewer at the job's start."""
    early: int = 60
    """Iterations that are the job's start."""
    early_settle: int = 10
    birth: int = 25
    """Least iterations of a slowdown that began with the job and is seen at its end."""
    birth_size: float = 0.07
    birth_longest: int = 512
    """Iterations after which a faster level is no end of a slow start any more."""
