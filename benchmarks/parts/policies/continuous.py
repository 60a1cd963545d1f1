"""Long continuous replay: the first 60 % of a trace's time warms the pool up, the rest counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.rules import NamedRules
from simulator.engine.sizing import OfferedLoad
from simulator.kernel.run import Rules, simulate
from simulator.kernel.work import Ints, Work, build_work
from simulator.metrics.bootstrap import hours
from simulator.metrics.outcome import Floats, ScheduleOutcome
from simulator.metrics.policy_jobs import PolicyJobs
from simulator.workload.errors import TraceError
from simulator.workload.locate import locate
from simulator.workload.rows import NODE_GPUS
from simulator.workload.source import read_columns

WARM_UP = 0.6
VALIDATED_FROM = 0.3
"""Begin of the window by which a deployed policy may be chosen: the last half of the warm-up,
before anything that counts. A shorter window is too noisy: where gangs are large, weeks matter."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A trace, or one cluster of it, on 8-GPU nodes of its own."""

    name: str
    work: Work
    sizes: Ints
    load: float
    """Load offered in the window that counts, by the jobs that fit the pool."""
    costs: StopCosts = StopCosts()

    @property
    def capacity_gpus(self) -> int:
        return int(self.sizes.sum())

    def window_ms(self, low: float = WARM_UP, high: float = 1.0) -> tuple[int, int]:
        first, last = int(self.work.submit_ms[0]), int(self.work.submit_ms[-1])
        return first + int(low * (last - first)), first + int(high * (last - first)) + 1

    def run(self, rules: Rules) -> ScheduleOutcome:
        return self.simulate(self.work, rules, self.window_ms())

    def simulate(
        self, work: Work, rules: Rules, window_ms: tuple[int, int] | None = None
    ) -> ScheduleOutcome:
        """Return the outcome of this work on these nodes, at these costs."""
        return simulate(work, self.sizes, self.costs.applied(rules), window_ms).outcome


@cache
def work_named(name: str) -> tuple[Work, tuple[str, ...]]:
    columns = read_columns(name)
    return build_work(columns), columns.tenants


def replay_of(
    name: str, load: float, cluster: str | None = None, costs: StopCosts | None = None
) -> Replay:
    """Return the whole trace, or the jobs of the tenant `cluster`, at that offered load."""
    work, tenants = work_named(name)
    if cluster is not None:
        work = work.part(work.tenant == tenants.index(cluster))
    label = name.rsplit("/", 1)[-1].removesuffix(".parquet") + (f"/{cluster}" if cluster else "")
    sizes, reached = nodes_for(work, load)
    return Replay(label, work, sizes, reached, costs or StopCosts())


def nodes_for(work: Work, load: float) -> tuple[Ints, float]:
    """Return the nodes nearest to the load that hold the largest gang, and the load reached."""
    first, last = work.submit_ms[0] / 1000, work.submit_ms[-1] / 1000
    window = (first + WARM_UP * (last - first), float(np.nextafter(last, np.inf)))
    offered = OfferedLoad(
        work.submit_ms / 1000,
        work.duration_ms / 1000,
        work.gang.astype(np.float64),
        np.ceil(work.gang / NODE_GPUS),
        NODE_GPUS,
        window,
    )
    nodes = offered.nodes_for(load)
    return np.full(nodes, NODE_GPUS, np.int64), offered.load(nodes)


def carried(replays: list[Replay], rules: Rules) -> tuple[float, float]:
    """Return the unfinished work at the begin and at the end of the window, as shares of capacity.

    The window's utilisation is its load, plus the first, less the second.
    """
    begins = ends = capacity_gpu_s = 0.0
    for replay in replays:
        low, high = replay.window_ms()
        begins += unfinished_gpu_s(replay, rules, low)
        ends += unfinished_gpu_s(replay, rules, high)
        capacity_gpu_s += replay.capacity_gpus * (high - low) / 1000
    return begins / capacity_gpu_s, ends / capacity_gpu_s


def unfinished_gpu_s(replay: Replay, rules: Rules, until_ms: int) -> float:
    """Return the GPU-seconds submitted before a time, less those used before it."""
    work, first = replay.work, int(replay.work.submit_ms[0])
    outcome = replay.simulate(work, rules, (first, until_ms))
    is_submitted = (work.submit_ms < until_ms) & outcome.fits
    submitted = float((work.gang * work.duration_ms)[is_submitted].sum()) / 1000
    return submitted - outcome.busy_gpu_s


def side_of(outcomes: list[ScheduleOutcome]) -> PolicyJobs:
    """Return the jobs that count of all clusters; the hours of one follow those of another."""
    counted = [(outcome, outcome.in_window & outcome.fits) for outcome in outcomes]
    lengths = [len(outcome.held_by_hour) for outcome in outcomes]
    offsets = np.cumsum([0, *lengths[:-1]])
    units = [
        hours(outcome.submit_s, outcome.window_s[0])[jobs] + offset
        for (outcome, jobs), offset in zip(counted, offsets, strict=True)
    ]
    held = np.concatenate([outcome.held_by_hour for outcome in outcomes])
    lost = np.concatenate([lost_by_hour(outcome) for outcome in outcomes])
    per_unit = len(held) / capacity_gpu_s(outcomes)
    return PolicyJobs(
        np.concatenate([(o.jct_s - o.duration_s)[jobs] for o, jobs in counted]),
        np.concatenate([o.jct_s[jobs] for o, jobs in counted]),
        np.concatenate([o.slowdown[jobs] for o, jobs in counted]),
        np.concatenate(units),
        held * per_unit,
        (held - lost) * per_unit,
    )


def lost_by_hour(outcome: ScheduleOutcome) -> Floats:
    """Return the losses by the hour, which the kernel knows."""
    if outcome.lost_by_hour is None:
        raise ValueError("lost_by_hour: not in this outcome; only the kernel has it")
    return outcome.lost_by_hour


def capacity_gpu_s(outcomes: list[ScheduleOutcome]) -> float:
    """Return the GPU-seconds that the windows of all clusters could give."""
    return sum(o.capacity_gpus * (o.window_s[1] - o.window_s[0]) for o in outcomes)


def mean_delay_s(outcome: ScheduleOutcome, window_s: tuple[float, float]) -> float:
    """Return the mean over the jobs submitted in the window; 0 without any."""
    chosen = (outcome.submit_s >= window_s[0]) & (outcome.submit_s < window_s[1]) & outcome.fits
    if not chosen.any():
        return 0.0
    return float((outcome.jct_s - outcome.duration_s)[chosen].mean())


def utilisation_of(outcomes: list[ScheduleOutcome]) -> float:
    """Return the GPU time held in the windows of all clusters, as a share of what they have."""
    return sum(outcome.busy_gpu_s for outcome in outcomes) / capacity_gpu_s(outcomes)


def preemption_costs(outcomes: list[ScheduleOutcome]) -> tuple[float, int]:
    """Return the share of GPU time that preemption lost, and the most starts of one job."""
    lost = sum(float((o.lost_s * o.gpus).sum()) for o in outcomes)
    held = sum(float((o.held_s * o.gpus).sum()) for o in outcomes)
    most = max(int(o.starts.max(initial=0)) for o in outcomes)
    return lost / held if held else 0.0, most


def validated_delay(replays: list[Replay], named: NamedRules) -> float:
    """Return what validation compares, in job-seconds: the delay of the warm-up's last half.

    Only jobs submitted before the window that counts are used, in a run that ends with them; so
    the choice does not depend on the evaluated jobs.
    """
    delay = 0.0
    for replay in replays:
        low, high = replay.window_ms(VALIDATED_FROM, WARM_UP)
        past = replay.work.part(replay.work.submit_ms < high)
        outcome = replay.simulate(past, named.rules)
        delay += mean_delay_s(outcome, (low / 1000, high / 1000)) * len(past)
    return delay


def is_shared(name: str) -> bool:
    """Return whether this machine has the shared trace of that name."""
    try:
        locate(name)
    except TraceError:
        return False
    return True
