"""Jobs with the arrivals, durations and gangs of a trace, each a training of a published model.

A gang takes the trace's duration where it hides its communication. The gradients are those of the
published numbers of parameters in four bytes; the computation of a step is drawn. Times between
arrivals are scaled to the load that the jobs would be without communication.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from shared.performance.links import GangSteps, TieredLinks
from shared.schedulers.view import TypedNode
from simulator.rounds.job import RoundsJob
from simulator.rounds.linked_work import LinkedWork
from simulator.workload.rows import WorkloadJob

PARAMETERS = {"resnet50": 25.6e6, "vgg16": 138.4e6, "transformer_big": 213e6, "bert_large": 340e6}
"""He et al., CVPR'16; Simonyan and Zisserman, ICLR'15; Vaswani et al., NeurIPS'17; Devlin et al.,
NAACL'19."""
BYTES = 4
COMPUTE_S = (0.1, 0.5)
"""Between these the computation of a step is drawn, evenly in its logarithm."""
OVERLAP = 0.5
LONGEST_S = 24 * 3600.0
SHORTEST_S = 60.0


@dataclass(frozen=True, slots=True)
class RackedCluster:
    """Racks of equal nodes with links between their GPUs."""

    racks: int
    nodes_of_rack: int
    gpus_of_node: int
    links: TieredLinks

    @property
    def gpus(self) -> int:
        return self.racks * self.nodes_of_rack * self.gpus_of_node

    def nodes(self) -> list[TypedNode]:
        return [
            TypedNode(f"r{rack}-n{node}", "v100", self.gpus_of_node, f"r{rack}")
            for rack in range(self.racks)
            for node in range(self.nodes_of_rack)
        ]


def linked_jobs(
    trace: Sequence[WorkloadJob], cluster: RackedCluster, load: float, seed: int
) -> list[RoundsJob]:
    """Return one job per row of the trace, which is ordered by time."""
    rng = random.Random(seed)
    largest = cluster.gpus // 2
    drawn: list[tuple[WorkloadJob, int, float, GangSteps]] = []
    for row in trace:
        model = rng.choice(sorted(PARAMETERS))
        low, high = COMPUTE_S
        compute_s = low * (high / low) ** rng.random()
        gpus = min(max(int(row.gpus), 1), largest)
        duration_s = min(max(row.duration_s, SHORTEST_S), LONGEST_S)
        steps = GangSteps(compute_s, PARAMETERS[model] * BYTES, cluster.links, OVERLAP)
        drawn.append((row, gpus, duration_s, steps))
    first_s = trace[0].submit_s
    span_s = max(trace[-1].submit_s - first_s, 1.0)
    work_gpu_s = sum(gpus * duration_s for _, gpus, duration_s, _ in drawn)
    scale = work_gpu_s / (load * cluster.gpus * span_s)
    return [
        RoundsJob(
            f"{number:05d}",
            (row.submit_s - first_s) * scale,
            gpus,
            LinkedWork(duration_s / steps.compute_s, steps),
        )
        for number, (row, gpus, duration_s, steps) in enumerate(drawn)
    ]
