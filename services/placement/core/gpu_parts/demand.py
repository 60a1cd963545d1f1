"""The distribution of the needs of workers: the classes that a fragment is judged by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.placement.core.gpu_parts.nodes import Ints, ints
from shared.contracts.gang_needs import Shape

Floats = NDArray[np.float64]
COVERED_PERCENT = 95
"""Share of all workers that the most frequent classes stand for, at least; the others are rare,
and each costs as much time as a frequent one."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Classes of workers by frequency, as arrays [m]; the class of a worker is its needs."""

    classes: tuple[Shape, ...]
    weight: Floats
    """Workers of each class: whole numbers, so that sums of products are exact."""
    gpus: Ints
    milli: Ints
    cpu_milli: Ints
    mem_mib: Ints

    @classmethod
    def of(cls, shapes: Iterable[Shape], covered_percent: int = COVERED_PERCENT) -> Demand:
        """Return the distribution of these workers."""
        return cls.of_counts(Counter(shapes), covered_percent)

    @classmethod
    def of_counts(
        cls,
        counts: Mapping[Shape, int],
        covered_percent: int = COVERED_PERCENT,
        most: int | None = None,
    ) -> Demand:
        """Return the most frequent classes that cover so many percent, ties in order of needs; at
        most so many.
        """
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        total, covered = sum(counts.values()), 0
        classes: list[tuple[Shape, int]] = []
        for shape, count in ordered:
            if 100 * covered >= covered_percent * total or len(classes) == most:
                break
            covered += count
            classes.append((shape, count))
        shapes = tuple(shape for shape, _ in classes)
        return cls(
            classes=shapes,
            weight=np.array([count for _, count in classes], np.float64),
            gpus=ints(shape.gpus for shape in shapes),
            milli=ints(shape.milli for shape in shapes),
            cpu_milli=ints(shape.cpu_milli for shape in shapes),
            mem_mib=ints(shape.mem_mib for shape in shapes),
        )
