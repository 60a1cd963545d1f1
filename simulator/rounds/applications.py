"""Trainings that were measured for Pollux' evaluation: step times, and progress by batch size.

The folder of an application has `placements.csv` and `scalability.csv` (step times by placement and
examples of a GPU) and a `validation-<batch>.csv` per batch size (progress and gradient noise by
epoch).
"""

from __future__ import annotations

import csv
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from shared.performance.goodput import BatchLimits

K = TypeVar("K")
Floats: TypeAlias = npt.NDArray[np.float64]

EPOCHS = {"bert": 2, "cifar10": 100, "ncf": 10, "imagenet": 90, "deepspeech2": 80, "yolov3": 50}
MOST_OF_GPU = {"yolov3": 8}
"""Examples that fit a GPU, where fewer than were measured."""


class StepSeconds(NamedTuple):
    """A step, and the part of it that is synchronisation."""

    step_s: float
    sync_s: float


@dataclass(frozen=True)
class StepCurve:
    """Seconds [sizes, 2] by examples of a GPU, ascending."""

    examples: Floats
    seconds: Floats

    def at(self, examples: float) -> Floats:
        return np.array(
            [np.interp(examples, self.examples, self.seconds[:, column]) for column in (0, 1)]
        )


@dataclass(frozen=True)
class Epochs:
    """Values of each epoch's end, at one batch size."""

    progress: Floats
    iteration: Floats
    squared_norm: Floats
    variance: Floats


class Application:
    """One training, as measured."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        files = sorted(folder.glob("validation-*.csv"), key=_batch_of)
        self.by_batch = {_batch_of(file): _epochs_of(file) for file in files}
        self.batches = sorted(self.by_batch)
        placements = list(_rows(folder / "placements.csv"))
        self.curves = _curves((row["placement"], row) for row in placements)
        points: list[tuple[tuple[int, int], dict[str, str]]]
        points = [((len(row["placement"]), _digits(row["placement"])), row) for row in placements]
        points += [
            ((int(row["num_nodes"]), int(row["num_replicas"])), row)
            for row in _rows(folder / "scalability.csv")
        ]
        self.by_size = _curves(points)
        self.node_counts = sorted({nodes for nodes, _ in self.by_size})
        sizes = [int(row["local_bsz"]) for row in placements]
        most = min(max(sizes), MOST_OF_GPU.get(self.name, max(sizes)))
        self.limits = BatchLimits(self.batches[0], self.batches[-1], min(sizes), most)
        self.epochs = EPOCHS[self.name]
        self.steps = lru_cache(maxsize=None)(self._steps)
        self.noise = lru_cache(maxsize=None)(self._noise)

    def progress_after(self, epochs: int) -> float:
        """Return the progress at the end of so many epochs: the least over batch sizes."""
        if epochs == 0:
            return 0.0
        return min(float(own.progress[epochs - 1]) for own in self.by_batch.values())

    def iterations_after(self, batch: int, epoch: int) -> float:
        """Return the iterations at the end of an epoch, counted from 0, at a batch size."""
        low, high, part = self._neighbours(batch)
        below, above = self.by_batch[low], self.by_batch[high]
        first, second = float(below.iteration[epoch]), float(above.iteration[epoch])
        return first + part * (second - first)

    def _noise(self, batch: int, epoch: int) -> tuple[float, float]:
        """Return squared norm and variance of the gradient in an epoch."""
        low, high, part = self._neighbours(batch)
        below, above = self.by_batch[low], self.by_batch[high]
        first = np.array([below.squared_norm[epoch], below.variance[epoch]])
        second = np.array([above.squared_norm[epoch], above.variance[epoch]])
        norm, variance = (first + part * (second - first)).tolist()
        return norm, variance

    def _steps(self, per_node: tuple[int, ...], examples: int) -> StepSeconds:
        """Return the seconds of a step on a placement, which is alike however it is rotated.

        A placement that was not measured is between those of near numbers of nodes and GPUs per
        node.
        """
        rotated = min(per_node[first:] + per_node[:first] for first in range(len(per_node)))
        curve = self.curves.get("".join(map(str, rotated)))
        if curve is not None:
            return StepSeconds(*curve.at(examples).tolist())
        return StepSeconds(*self._between(len(per_node), sum(per_node), examples).tolist())

    def _between(self, nodes: int, gpus: int, examples: int) -> Floats:
        nodes = min(nodes, self.node_counts[-1])
        place = bisect_left(self.node_counts, nodes)
        above = self.node_counts[place]
        below = above if above == nodes else self.node_counts[place - 1]
        per_node = gpus / nodes
        second = self._at_density(above, per_node, examples)
        if above == below:
            return second
        first = self._at_density(below, per_node, examples)
        between: Floats = first + (second - first) * (nodes - below) / (above - below)
        return between

    def _at_density(self, nodes: int, per_node: float, examples: int) -> Floats:
        """Return the seconds on a measured number of nodes with so many GPUs on the mean one."""
        numbers = sorted(gpus for count, gpus in self.by_size if count == nodes)
        gpus = min(max(per_node * nodes, numbers[0]), numbers[-1])
        above = numbers[bisect_left(numbers, gpus)]
        below = numbers[max(bisect_right(numbers, gpus) - 1, 0)]
        second = self.by_size[nodes, above].at(examples)
        if above == below:
            return second
        first = self.by_size[nodes, below].at(examples)
        between: Floats = first + (second - first) * (gpus - below) / (above - below)
        return between

    def _neighbours(self, batch: int) -> tuple[int, int, float]:
        """Return the measured batch sizes around one, and how far it is from the lower one."""
        high = self.batches[bisect_left(self.batches, batch)]
        low = self.batches[bisect_right(self.batches, batch) - 1]
        return low, high, 0.0 if high == low else (batch - low) / (high - low)


@lru_cache(maxsize=32)
def application(folder: Path) -> Application:
    return Application(folder)


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with path.open(newline="") as lines:
        yield from csv.DictReader(lines)


def _batch_of(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _digits(placement: str) -> int:
    return sum(map(int, placement))


def _epochs_of(path: Path) -> Epochs:
    rows = list(_rows(path))
    names = ("progress", "iteration", "grad_sqr", "grad_var")
    return Epochs(*(np.array([float(row[name]) for row in rows]) for name in names))


def _curves(rows: Iterable[tuple[K, dict[str, str]]]) -> dict[K, StepCurve]:
    """Return a curve per key; of several measurements at one size the mean is taken."""
    points: dict[K, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for key, row in rows:
        pair = float(row["step_time"]), float(row["sync_time"])
        points[key][int(row["local_bsz"])].append(pair)
    return {
        key: StepCurve(
            np.array(sorted(sizes), np.float64),
            np.array([np.mean(sizes[size], axis=0) for size in sorted(sizes)]),
        )
        for key, sizes in points.items()
    }
