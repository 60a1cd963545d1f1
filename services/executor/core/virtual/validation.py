"""Measurements of a virtual node, by the model of its speed: nothing is computed."""

from __future__ import annotations

from collections.abc import Callable

from services.executor.core.virtual.effects import WorkerSpec
from services.executor.core.virtual.injected import NodeSlowdown
from shared.contracts.validation import FIRST_GPU, FIRST_LINK, MEMORY, MOST_GPUS, PROCESSOR

RUNS_S = 3.0
"""Wall s that a validation takes, on any time scale: telemetry is sent each second."""
PROCESSOR_S, MEMORY_S, GPU_S, LINK_S = 0.02, 0.01, 0.05, 0.03

Slowdowns = Callable[[str], NodeSlowdown]
"""Slowdown of a node."""


def measurements(
    spec: WorkerSpec, of: Slowdowns, jitter: Callable[[str, int], float]
) -> dict[int, float]:
    """Return what the worker measures, s by number of the iteration.

    A slow node computes slowly. A slow link is one of which either end is slow, and the transfers
    go around the ring of the nodes.
    """
    work = of(spec.node_id).work
    gpus = range(FIRST_GPU, FIRST_GPU + min(len(spec.gpus), MOST_GPUS))
    times_s = {PROCESSOR: PROCESSOR_S * work, MEMORY: MEMORY_S * work}
    times_s |= dict.fromkeys(gpus, GPU_S * work)
    following = (spec.rank + 1) % spec.world_size
    ends = (spec.node_id, spec.job_spec.validates[following])
    times_s[FIRST_LINK + following] = LINK_S * max(of(node_id).link for node_id in ends)
    return {part: s * jitter(spec.allocation_id, part) for part, s in times_s.items()}
