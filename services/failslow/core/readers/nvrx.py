"""Straggler reports of NVIDIA's resiliency extension (NVRx), as JSON of the fields of its `Report`.

`json.dump(dataclasses.asdict(report), file)` on rank 0 writes one, with the scores of all ranks
where the detector has `gather_on_rank0`.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

GPU = "gpu_relative_perf_scores"
SECTIONS = "section_relative_perf_scores"
NODES = "rank_to_node"


class StragglerReport(NamedTuple):
    """Relative scores: 1 is best."""

    gpu: dict[int, float]
    sections: dict[str, dict[int, float]]
    nodes: dict[int, str]

    def scores(self) -> dict[int, float]:
        """Return the scores of the GPUs; without them the worst of each rank's sections."""
        if self.gpu:
            return self.gpu
        worst: dict[int, float] = {}
        for scores in self.sections.values():
            for rank, score in scores.items():
                worst[rank] = min(score, worst.get(rank, score))
        return dict(sorted(worst.items()))


def read_report(text: str) -> StragglerReport:
    """Return the report. Raises ValueError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"NVRx report: not JSON: {error}") from None
    if not isinstance(document, dict) or not (GPU in document or SECTIONS in document):
        raise ValueError(f"NVRx report: neither {GPU} nor {SECTIONS}; one of them is required")
    sections = _object(document, SECTIONS)
    return StragglerReport(
        _scores(_object(document, GPU), GPU),
        {str(name): _scores(scores, f"{SECTIONS}.{name}") for name, scores in sections.items()},
        {int(rank): str(node) for rank, node in _object(document, NODES).items()},
    )


def _object(document: dict[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name) or {}
    if not isinstance(value, dict):
        raise ValueError(f"NVRx report: {name}: an object by rank is allowed")
    return value


def _scores(values: Any, where: str) -> dict[int, float]:
    """Return the scores by rank, without those of ranks that have none (NaN). Raises ValueError."""
    if not isinstance(values, dict):
        raise ValueError(f"NVRx report: {where}: an object by rank is allowed")
    scores: dict[int, float] = {}
    for rank, value in values.items():
        if not str(rank).isdecimal() or not isinstance(value, int | float):
            raise ValueError(f"NVRx report: {where}: {rank!r}: {value!r}; a score is allowed")
        if not math.isnan(value):
            scores[int(rank)] = float(value)
    return dict(sorted(scores.items()))
