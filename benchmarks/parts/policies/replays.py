"""Traces replayed at a load under every rule, and which of the candidates validation chose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.parts.command import Say
from benchmarks.parts.policies import continuous
from benchmarks.parts.policies.continuous import Replay, replay_of
from benchmarks.parts.policies.options import PoliciesOptions
from benchmarks.parts.policies.rules import (
    EASY_FCFS,
    GITTINS,
    LAS,
    MULTIFACTOR,
    QSSF,
    QUEUES,
    SKIP_FCFS,
    SMALLEST,
    SRSF_ORACLE,
    STRICT_FCFS,
    NamedRules,
    deployed,
    seeds,
    without_defragmentation,
)
from simulator.engine.trial import REGRET
from simulator.metrics.outcome import ScheduleOutcome
from simulator.metrics.policy_jobs import PolicyJobs
from simulator.workload.source import SYNTHETIC

LOADS = (0.7, 0.9, 0.95, 1.1)
LOAD = 0.9
SEEDED = (0.9, 0.95)
"""Loads at which the networks of all training seeds are evaluated."""
CLUSTERS = ("cluster03", "cluster04", "cluster07")
"""Clusters of ITP with a thousand jobs and gangs; its tenants never share GPUs."""
TRACES: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("helios_venus", (None,)),
    ("philly", (None,)),
    ("msft_itp", CLUSTERS),
    ("alibaba_pai_2020", (None,)),
    ("helios_vc_users", (None,)),
)


@dataclass(frozen=True, slots=True)
class EvaluatedTrace:
    """A trace at a load, with the outcomes of every rule, one per cluster."""

    name: str
    load: float
    replays: list[Replay]
    ours: NamedRules
    """The candidate that validation chose."""
    outcomes: dict[str, list[ScheduleOutcome]]
    seeds: dict[str, PolicyJobs]
    """Jobs under the network of each training seed."""
    carried: dict[str, tuple[float, float]]
    """Work carried into and out of the window by some rules; see `continuous.carried`."""

    def side(self, named: NamedRules) -> PolicyJobs:
        return continuous.side_of(self.outcomes[key(named)])

    @property
    def offered_load(self) -> float:
        """Load of all clusters, weighted by capacity."""
        weights = [replay.capacity_gpus for replay in self.replays]
        return float(np.average([replay.load for replay in self.replays], weights=weights))


def settings(options: PoliciesOptions) -> list[tuple[str, float, tuple[str | None, ...]]]:
    """Return (trace, load, clusters) of the replays; the synthetic trace if there is no other."""
    if options.trace:
        return [(options.trace, LOAD, (None,))]
    loads = (LOAD,) if options.quick else LOADS
    traces = [
        (name, clusters) for name, clusters in TRACES if not options.quick or name == "helios_venus"
    ]
    replays = [
        (name, load, clusters)
        for name, clusters in traces
        if continuous.is_shared(name)
        for load in loads
    ]
    return replays or [(SYNTHETIC, LOAD, (None,))]


def evaluate(
    name: str,
    load: float,
    clusters: tuple[str | None, ...],
    ours: NamedRules,
    options: PoliciesOptions,
    say: Say,
) -> EvaluatedTrace:
    """Replay the trace under every rule."""
    replays = [replay_of(name, load, cluster) for cluster in clusters]
    say(f"{name} at load {load}: {sum(len(cluster.work) for cluster in replays):,} jobs")
    without_preemption = deployed(preemption=False, family=options.model)
    candidates = [ours, GITTINS, without_preemption, SMALLEST, SKIP_FCFS]
    chosen = continuous.choose_by_validation(replays, candidates, REGRET)
    rules = [SKIP_FCFS, EASY_FCFS, SRSF_ORACLE, SMALLEST, STRICT_FCFS, ours, chosen]
    if not options.quick:
        rules += [MULTIFACTOR, QSSF, LAS, GITTINS]
        rules += [deployed(*kind, family=options.model) for kind in QUEUES if load == LOAD]
    outcomes: dict[str, list[ScheduleOutcome]] = {}
    for named in rules:
        if key(named) not in outcomes:
            outcomes[key(named)] = run_all(replays, named)
    trace = EvaluatedTrace(replays[0].name.split("/")[0], load, replays, chosen, outcomes, {}, {})
    if not options.quick and load in SEEDED:
        for seed in seeds(ours):
            trace.seeds[seed.name] = continuous.side_of(run_all(replays, seed))
    if not options.quick and load == LOAD:
        add_details(trace)
    return trace


def add_details(trace: EvaluatedTrace) -> None:
    """Add the effect of defragmentation and the sources of utilisation, shown at one load only."""
    fixed = without_defragmentation(trace.ours)
    trace.outcomes[key(fixed)] = run_all(trace.replays, fixed)
    for named in (STRICT_FCFS, SKIP_FCFS, fixed, trace.ours, SRSF_ORACLE):
        trace.carried[key(named)] = continuous.carried(trace.replays, named.rules)


def run_all(replays: list[Replay], named: NamedRules) -> list[ScheduleOutcome]:
    return [cluster.run(named.rules) for cluster in replays]


def key(named: NamedRules) -> str:
    """Return the key of the rules in `rules` and `carried` of the JSON."""
    return f"{named.name}/{named.knows}/{named.rules.queue_mode}/{named.rules.preemption}"
