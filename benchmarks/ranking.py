"""Ranking 10,000 waiting jobs: ONNX beside the same network in numpy, features included.

All are timed in turn, call by call, in one process; medians of CPU ms. Before each call the time
advances and some jobs arrive, as between two rankings of a live pool, so that features of unchanged
jobs come from the cache. `features_anew_ms` is with an empty cache. The floor is one sort of as
many scores, without which nothing is ranked.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.command import Json, serve
from services.priority.core.caches.feature_cache import FeatureCache
from services.priority.core.decide import Priority
from services.priority.core.learned.features import compute_features
from services.priority.core.learned.model import LearnedModel
from services.priority.core.state import PriorityState
from shared.contracts.base import Event
from shared.contracts.pools import LOG_SCORE_MARGIN, PoolConfigured
from shared.contracts.ranking import Finished, NodeGpus, QueueChanged, QueueEntry, Running, Started
from shared.ledger.decider import Fact
from shared.process.progress import ReportLine
from simulator.engine.models import FOLDER, load_models
from simulator.kernel.network import theta_of
from simulator.kernel.weights import split
from simulator.workload.rows import make_gang
from simulator.workload.synthetic import GPU_SHARES

Floats = NDArray[np.float32]
AT = 1_700_000_000_000
NODES, NODE_GPUS = 1250, 8
TENANTS = 40
NEW, NEW_AT = 20, 500_000
"""Jobs that arrive between two rankings, and their first number."""


@dataclass(frozen=True, slots=True)
class RankingOptions:
    """The defaults are those of the published figure."""

    waiting: int = 10_000
    running: int = 2_000
    model: str = "berth-preempt"
    times: int = 41
    quick: bool = False


async def run(options: RankingOptions, report_line: ReportLine) -> Json:
    times = 9 if options.quick else options.times
    queue = make_queue(options)
    pool = queue.pool
    assert pool is not None
    model = load_models(pool)[options.model]
    assert isinstance(model, LearnedModel)
    numpy_scores_of = numpy_network(options.model)
    now = AT + 3_600_000
    view = queue.view(now)
    x, context = compute_features(view)
    changes = QueueTurnover(queue, now)
    onnx_scores, numpy_scores = model.scores(x, context), numpy_scores_of(x, context)
    report_line(f"{options.waiting} waiting and {options.running} running jobs, {times} times each")
    decider = Priority({options.model: model})
    scores = onnx_scores[: options.waiting]
    medians_ms = time_in_turn(
        times,
        changes.tick,
        {
            "onnx_ms": lambda: model.scores(*compute_features(queue.view(changes.now))),
            "numpy_ms": lambda: numpy_scores_of(*compute_features(queue.view(changes.now))),
            "features_ms": lambda: compute_features(queue.view(changes.now)),
            "features_anew_ms": changes.compute_all_features,
            "onnx_network_ms": lambda: model.scores(x, context),
            "numpy_network_ms": lambda: numpy_scores_of(x, context),
            "whole_ranking_ms": lambda: list(decider.decide(queue, [], changes.now)),
            "floor_ms": lambda: np.argsort(scores, kind="stable"),
        },
    )
    return {
        "bench": "ranking",
        "waiting": options.waiting,
        "running": options.running,
        "model": options.model,
        "model_sha256": model.sha256,
        **medians_ms,
        "aim_ms": 5.0,
        "most_apart": float(np.abs(onnx_scores - numpy_scores).max()),
    }


@dataclass(slots=True)
class QueueTurnover:
    """Changes of the queue between two rankings."""

    queue: PriorityState
    now: int
    jobs: int = 0

    def tick(self) -> None:
        """Advance by a second; as many jobs arrive as leave."""
        self.now += 1000
        draw = random.Random(self.jobs)
        entered = tuple(entry(draw, NEW_AT + self.jobs + n) for n in range(NEW))
        left = tuple(list(self.queue.waiting)[:NEW])
        self.jobs += NEW
        evolve(Priority(), self.queue, QueueChanged(pool="p", entered=entered, left=left), self.now)

    def compute_all_features(self) -> object:
        """Compute all features with an empty cache."""
        self.queue.table.feature_cache = FeatureCache()
        return compute_features(self.queue.view(self.now))


def time_in_turn(
    times: int, tick: Callable[[], None], calls: dict[str, Callable[[], object]]
) -> dict[str, float]:
    """Return medians of CPU ms; the first call of each does not count."""
    spent_ms: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(times + 1):
        for name, call in calls.items():
            tick()
            began_s = time.process_time()
            call()
            if turn:
                spent_ms[name].append((time.process_time() - began_s) * 1000)
    return {name: round(float(np.median(times_ms)), 3) for name, times_ms in spent_ms.items()}


def numpy_network(name: str) -> Callable[[Floats, Floats], Floats]:
    """Return the same network as sums of numpy, in float32 as in ONNX."""
    parts = split(theta_of((FOLDER / f"{name}.onnx").read_bytes()))
    linear, inputs, biases, outputs = (part.astype(np.float32) for part in parts)

    def scores(x: Floats, context: Floats) -> Floats:
        width = x.shape[1]
        hidden = np.tanh(x @ inputs[:width] + (context @ inputs[width:] + biases)) @ outputs
        result: Floats = x @ linear[:width] + context @ linear[width:] + hidden
        return result

    return scores


def make_queue(options: RankingOptions) -> PriorityState:
    """Return a pool with finished jobs in its history, running jobs, and many more waiting."""
    draw = random.Random(7)
    decider = Priority()
    queue = decider.initial(0)
    jobs = [entry(draw, n) for n in range(options.waiting + 2 * options.running)]
    finished, rest = jobs[: options.running], jobs[options.running :]
    running = rest[: options.running]
    pool = PoolConfigured(
        partition=0,
        pool="p",
        base_policy="fair_share",
        learned=options.model,
        preemption="ranked",
        preempt_margin=LOG_SCORE_MARGIN,
        rank_ms=0,
    )
    nodes = tuple(NodeGpus(node_id=f"n{n:04d}", gpus=NODE_GPUS) for n in range(NODES))
    events = [
        (pool, AT),
        (QueueChanged(pool="p", nodes=nodes, entered=tuple(finished)), AT),
        (
            QueueChanged(
                pool="p",
                finished=tuple(
                    Finished(job_id=job.job_id, ran_s=draw.lognormvariate(6, 2)) for job in finished
                ),
                left=tuple(job.job_id for job in finished),
            ),
            AT + 1,
        ),
        (QueueChanged(pool="p", entered=tuple(rest)), AT + 2),
        (
            QueueChanged(
                pool="p",
                running=tuple(
                    Running(job_id=job.job_id, tenant=job.tenant, gpus=job.gpus, since=AT + 3)
                    for job in running
                ),
                started=tuple(
                    Started(job_id=job.job_id, at=AT + draw.randrange(3, 3_000_000))
                    for job in running
                ),
            ),
            AT + 3,
        ),
    ]
    for event, at in events:
        evolve(decider, queue, event, at)
    return queue


def evolve(decider: Priority, queue: PriorityState, event: Event, at: int) -> None:
    decider.evolve(queue, Fact(event, "priority", 0, 1, 0, at))


def entry(draw: random.Random, number: int) -> QueueEntry:
    (gpus,) = draw.choices(list(GPU_SHARES), list(GPU_SHARES.values()))
    shape = make_gang(gpus)
    tenant = draw.randrange(TENANTS)
    return QueueEntry(
        job_id=f"j{number:06d}",
        tenant=f"t{tenant:02d}",
        user=f"u{tenant}-{draw.randrange(5)}",
        name=f"train-{draw.randrange(8)}",
        submitted_at=AT - draw.randrange(10**7),
        gpus=shape.workers * shape.gpus_per_worker,
        workers=shape.workers,
    )


if __name__ == "__main__":
    serve(run, RankingOptions, __doc__ or "")
