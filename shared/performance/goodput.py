"""The goodput of a training that adapts its batch size (Pollux, OSDI'21, sections 3.1 and 3.2).

Goodput is throughput times statistical efficiency: examples per second, counted as those at the
initial batch size that would make as much progress. Arguments `nodes` and `gpus` are arrays of one
shape.

numpy is imported by what computes: it starts a thread, which a forked service would lose, and views
of live pools have the types of this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.int64]

ALONE_S = 1e-8
"""Seconds in which one GPU synchronises with itself: not 0, as its logarithm is taken."""
SAMPLES = 50
"""Batch sizes that are tried, in geometric steps between the least and the largest."""
ROUNDING = 1e-8


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Parameters of the time of a step, s.

    Computing takes `compute_s` + `compute_s_per_example` * examples of a GPU; synchronising takes
    `link_s` + `link_s_per_gpu` * (GPUs - 2), within a node or over nodes. They overlap by `overlap`
    from 1 (one after the other) to 10 (almost wholly): (compute^g + sync^g)^(1/g).
    """

    compute_s: float
    compute_s_per_example: float
    across_s: float
    across_s_per_gpu: float
    within_s: float
    within_s_per_gpu: float
    overlap: float

    def computing_s(self, examples: Floats) -> Floats:
        return self.compute_s + self.compute_s_per_example * examples

    def syncing_s(self, nodes: Floats, gpus: Floats) -> Floats:
        import numpy as np

        beyond_two = np.maximum(gpus - 2, ROUNDING)
        across = self.across_s + self.across_s_per_gpu * beyond_two
        within = self.within_s + self.within_s_per_gpu * beyond_two
        alone = ALONE_S + ALONE_S * beyond_two
        return np.where(nodes > 1, across, np.where(gpus > 1, within, alone))

    def step_s(self, nodes: Floats, gpus: Floats, examples: Floats) -> Floats:
        """Return the seconds of a step that ends with a synchronisation."""
        import numpy as np

        power = self.overlap
        computing, syncing = self.computing_s(examples), self.syncing_s(nodes, gpus)
        longer = np.maximum(computing, syncing)
        shorter = np.minimum(computing, syncing)
        both: Floats = longer * (1.0 + (shorter / longer) ** power) ** (1.0 / power)
        return both


@dataclass(frozen=True, slots=True)
class GradientNoise:
    """Squared norm and variance of the gradient at the initial batch size."""

    squared_norm: float
    variance: float

    def gain(self, scale: Floats) -> Floats:
        """Return the progress of a step at `scale` times the initial batch size."""
        import numpy as np

        below = self.variance / scale + self.squared_norm
        gain: Floats = np.divide(
            self.variance + self.squared_norm, below, out=np.ones_like(below), where=below > 0
        )
        return gain


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Examples of a step over all GPUs, and those that one GPU takes at a time."""

    initial: int
    largest: int
    least_of_gpu: int
    most_of_gpu: int


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """Arrays over allocations: the best goodput, examples of a GPU at a time, accumulated steps."""

    goodput: Floats
    examples_of_gpu: Ints
    accumulated: Ints


@dataclass(frozen=True, slots=True)
class GoodputModel:
    """A job's own model, fitted to its steps: `step_fit.fit`."""

    steps: StepTimes
    noise: GradientNoise
    limits: BatchLimits

    def throughput(
        self, nodes: Floats, gpus: Floats, examples: Floats, accumulated: Floats
    ) -> Floats:
        """Return examples per second with `accumulated` steps before each synchronisation."""
        total_s = accumulated * self.steps.computing_s(examples)
        total_s = total_s + self.steps.step_s(nodes, gpus, examples)
        rate: Floats = gpus * examples * (accumulated + 1) / total_s
        return rate

    def efficiency(self, batch: Floats) -> Floats:
        """Return the progress of an example relative to one at the initial batch size."""
        scale = batch / self.limits.initial
        efficiency: Floats = self.noise.gain(scale) / scale
        return efficiency

    def best(self, nodes: npt.ArrayLike, gpus: npt.ArrayLike) -> BatchChoice:
        """Return the batch with most goodput for each allocation, arrays [allocations].

        One GPU that takes more than the initial batch accumulates at least one step, since one
        gradient alone has no variance to scale the learning rate by.
        """
        import numpy as np

        wide = np.asarray(nodes, np.float64)[None, :]
        count = np.asarray(gpus, np.float64)[None, :]
        limits = self.limits
        least = np.maximum(limits.initial, limits.least_of_gpu * count[0])
        batches = np.geomspace(least, limits.largest, SAMPLES)
        of_gpu = batches / count
        accumulated = np.ceil(of_gpu / limits.most_of_gpu - ROUNDING) - 1
        is_single = (count == 1) & (of_gpu > limits.initial + ROUNDING)
        accumulated = np.where(is_single, np.maximum(accumulated, 1), accumulated)
        examples = np.ceil(of_gpu / (accumulated + 1) - ROUNDING)
        batch = count * examples * (accumulated + 1)
        goodput = self.throughput(wide, count, examples, accumulated) * self.efficiency(batch)
        is_allowed = (examples >= limits.least_of_gpu) & (examples <= limits.most_of_gpu)
        goodput = np.where(is_allowed, goodput, 0.0)
        picked = np.argmax(goodput, axis=0), np.arange(goodput.shape[1])
        return BatchChoice(
            goodput[picked], examples[picked].astype(np.int64), accumulated[picked].astype(np.int64)
        )
