"""Jobs of Synergy's evaluation (OSDI'22): one GPU each, at the load and with the models released.

Models, their classes and the order of draws are those of the released simulator, so its seed gives
the same jobs; durations are drawn as in Gavel's evaluation. Cores, memory, speeds and seconds of
the models are the released profiles, which define this workload and are no estimate of other jobs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from shared.performance.footprint import Footprint
from shared.schedulers.host_shares.sensitivity import PerGpu, Sensitivity
from shared.schedulers.view import Estimates, TypedNode
from simulator.rounds.gavel_jobs import draw_duration_s
from simulator.rounds.job import RoundsJob
from simulator.rounds.work import Ran
from simulator.rounds.world import RoundsOptions

NODES, NODE_GPUS, NODE_CPU_MILLI, NODE_MEM_MIB = 16, 8, 24_000, 500_000
"""V100 nodes: 3 cores and 62.5 GB a GPU; memory is counted in thousandths of a GB there."""
ROUND_S = 300.0
JOBS_PER_H = 9.0
FAIR = PerGpu(NODE_CPU_MILLI // NODE_GPUS, NODE_MEM_MIB // NODE_GPUS)


class TunedModel(NamedTuple):
    """Seconds of an iteration with the part of a GPU, and the speed with what saturates it."""

    iteration_s: float
    saturating: PerGpu
    speedup: float


MODELS = MappingProxyType(
    {
        "alexnet": TunedModel(0.6, PerGpu(12_000, 125_000), 2.94),
        "res18": TunedModel(0.64, PerGpu(9_000, 62_500), 2.4),
        "res50": TunedModel(0.78, PerGpu(4_000, 62_500), 1.15),
        "mobilenet": TunedModel(0.71, PerGpu(6_000, 62_500), 1.55),
        "shufflenet": TunedModel(0.615, PerGpu(12_000, 125_000), 2.89),
        "gnmt": TunedModel(0.12, PerGpu(1_000, 20_000), 1.0),
        "transformer": TunedModel(0.67, PerGpu(1_000, 20_000), 1.0),
        "lstm": TunedModel(0.011, PerGpu(1_000, 20_000), 1.0),
        "m5": TunedModel(0.6, PerGpu(6_000, 187_500), 2.5),
        "deepspeech": TunedModel(0.757, PerGpu(3_000, 62_500), 1.0),
    }
)
CLASSES = (
    (0.2, ("alexnet", "res18", "res50", "mobilenet", "shufflenet")),
    (0.7, ("gnmt", "transformer", "lstm")),
    (0.1, ("m5", "deepspeech")),
)
"""Share of each class of models, image, language and speech; within one they take turns."""


@dataclass(slots=True)
class SharedHostWork:
    """Whole iterations, at the full speed of the model or at that of its part of a node.

    A job holds its GPUs to the end of the round in which it ends.
    """

    total: int
    model: TunedModel
    done: int = 0
    share: PerGpu | None = None

    def settle(self, footprint: Footprint) -> None:
        """Do nothing: one GPU is the same everywhere."""

    def hold(self, share: PerGpu | None) -> None:
        self.share = share

    def run(self, footprint: Footprint, seconds: float) -> Ran:
        speed = self.sensitivity().speed_with(self.share or FAIR)
        self.done += math.floor(seconds / (self.model.iteration_s / speed)) if speed else 0
        return Ran(seconds, self.done >= self.total)

    def left_s(self, footprint: Footprint) -> float | None:
        """Return None: the job ends with a round, however early in it its work is done."""
        return None

    def estimates(self) -> Estimates:
        return Estimates("oracle", sensitivity=self.sensitivity())

    def sensitivity(self) -> Sensitivity:
        """Return the speeds with the part of a GPU and with what saturates the model."""
        full, speedup = self.model.saturating, self.model.speedup
        if speedup == 1.0:
            return Sensitivity((full.cpu_milli,), (full.mem_mib,), ((1.0,),))
        cpus, mems = (FAIR.cpu_milli, full.cpu_milli), (FAIR.mem_mib, full.mem_mib)
        if FAIR.mem_mib == full.mem_mib:
            return Sensitivity(cpus, mems[:1], ((1.0,), (speedup,)))
        return Sensitivity(cpus, mems, ((1.0, 1.0), (1.0, speedup)))

    def most_gpus(self) -> int | None:
        return None


def synergy_nodes() -> list[TypedNode]:
    return [
        TypedNode(f"n{number:02d}", "v100", NODE_GPUS, "", 0.0, NODE_CPU_MILLI, NODE_MEM_MIB)
        for number in range(NODES)
    ]


def synergy_options(seed: int = 0) -> RoundsOptions:
    return RoundsOptions(round_s=ROUND_S, seed=seed)


def synergy_jobs(seed: int, count: int) -> Iterator[RoundsJob]:
    """Yield jobs with exponential gaps in whole seconds, and models that keep the shares."""
    of_jobs, of_gaps = random.Random(seed), random.Random(seed)
    counts = [0] * len(CLASSES)
    submit_s = 0.0
    for number in range(count):
        submit_s += math.ceil(-math.log(1.0 - of_gaps.random()) / JOBS_PER_H * 3600)
        of_gaps.randint(0, len(MODELS) - 1)
        missing = [
            share - own / number if number else 0.0
            for (share, _), own in zip(CLASSES, counts, strict=True)
        ]
        chosen = missing.index(max(missing))
        names = CLASSES[chosen][1]
        model = MODELS[names[counts[chosen] % len(names)]]
        counts[chosen] += 1
        work = SharedHostWork(int(draw_duration_s(of_jobs) / model.iteration_s), model)
        yield RoundsJob(f"{number:06d}", submit_s, 1, work)
