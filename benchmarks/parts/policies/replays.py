"""Traces replayed at a load under every rule, and which of the candidates validation chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.parts.policies import continuous
from benchmarks.parts.policies.continuous import Replay, replay_of
from benchmarks.parts.policies.options import PoliciesOptions
from benchmarks.parts.policies.rules import (
    EASY_FCFS,
    EASY_PREDICTED,
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
    committed,
    seeds,
    without_defragmentation,
)
from shared.process.progress import ReportLine
from simulator.metrics.outcome import ScheduleOutcome
from simulator.metrics.policy_jobs import PolicyJobs
from simulator.workload.source import SYNTHETIC

CANDIDATES = (GITTINS, QSSF, SMALLEST, SKIP_FCFS)
"""The shipped policy, and those of which validation may choose one instead."""
LOADS = (0.7, 0.9, 0.95, 1.1)
LOAD = 0.9
REGRET = 0.05
"""Gain by which another candidate must be better to be taken instead of the first."""
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
    without_preemption: NamedRules
    """The one that it chose among those without preemption."""
    network: NamedRules
    """The learned policy with preemption."""
    outcomes: dict[str, list[ScheduleOutcome]]
    seeds: dict[str, PolicyJobs]
    """The jobs under the network of each training seed."""
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
    network: NamedRules,
    options: PoliciesOptions,
    report_line: ReportLine,
) -> EvaluatedTrace:
    """Replay the trace under every rule.

    Validation chooses among the policies that learnt nothing from these traces: the window by which
    it chooses is older than what counts, and the training of the networks saw it.
    """
    replays = [replay_of(name, load, cluster, options.costs) for cluster in clusters]
    report_line(f"{name} at load {load}: {sum(len(cluster.work) for cluster in replays):,} jobs")
    delays = [continuous.validated_delay(replays, named) for named in CANDIDATES]
    chosen = CANDIDATES[choose_candidate(delays, REGRET)]
    without_preemption = CANDIDATES[1 + int(np.argmin(delays[1:]))]
    rules = [SKIP_FCFS, EASY_FCFS, SRSF_ORACLE, SMALLEST, STRICT_FCFS, GITTINS, network]
    rules += [chosen, without_preemption]
    if not options.quick:
        rules += [MULTIFACTOR, QSSF, EASY_PREDICTED, LAS]
        rules += [committed(*kind, family=options.model) for kind in QUEUES if load == LOAD]
    outcomes: dict[str, list[ScheduleOutcome]] = {}
    for named in rules:
        if key(named) not in outcomes:
            outcomes[key(named)] = run_all(replays, named)
    label = replays[0].name.split("/")[0]
    trace = EvaluatedTrace(
        label, load, replays, chosen, without_preemption, network, outcomes, {}, {}
    )
    if not options.quick:
        for seed in seeds(network):
            trace.seeds[seed.name] = continuous.side_of(run_all(replays, seed))
    if not options.quick and load == LOAD:
        add_details(trace)
    return trace


def choose_candidate(delays_s: Sequence[float], regret: float = REGRET) -> int:
    """Return the first, unless a later one was better by `regret`: then the best."""
    best = int(np.argmin(delays_s))
    return best if delays_s[best] * (1 + regret) < delays_s[0] else 0


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
    return f"{named.name}/{named.runtime_source}/{named.rules.queue_mode}/{named.rules.preemption}"
