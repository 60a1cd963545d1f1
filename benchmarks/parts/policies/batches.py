"""RLTune's protocol: batches of consecutive jobs of Helios Venus, ours over each blocking base.

RLTune is the authors' method, trained here (`benchmarks/parts/rltune`). Two policies know all run
times and are bounds: of the wait, shortest first with
preemption; of utilisation without preemption, longest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.parts.command import Json
from benchmarks.parts.policies import continuous
from benchmarks.parts.policies.cells import METRICS, Cell, compare
from benchmarks.parts.policies.options import PoliciesOptions
from benchmarks.parts.policies.rules import (
    GITTINS,
    QUEUES,
    SMALLEST,
    SRSF_ORACLE,
    NamedRules,
    committed,
    is_learned,
    oracle,
    over,
    seeds,
)
from benchmarks.parts.rltune.evaluation import run_batch as run_rltune
from benchmarks.parts.rltune.network import read_weights
from shared.process.progress import ReportLine
from simulator.kernel import batches as kernel_batches
from simulator.kernel.batches import JobBatch
from simulator.metrics.outcome import ScheduleOutcome
from simulator.metrics.policy_jobs import PolicyJobs

TRACE = "helios_venus"
RLTUNE, RLTUNE_SEED = "RLTune", 1
BATCHES, QUICK_BATCHES = 100, 40
BATCH_METRICS = [name for name in METRICS if name not in ("p99_wait_s", "productive_utilisation")]
"""Work over the time until the last end, as RLTune measures use, has no lost work in it."""
BATCH_BASES = ("fcfs", "multifactor", "f1", "wfp3", "sjf", "unicep")
BLIND = frozenset({"fcfs", "multifactor"})
"""Bases that use no run times; the others use the true ones."""
WAIT_BOUND = replace(SRSF_ORACLE, name="srsf, the oracle's bound")
USE_BOUND = replace(oracle("sjf", "skip"), name="longest first, the oracle's bound of use")


def batch_cells(options: PoliciesOptions, report_line: ReportLine) -> list[Cell]:
    """Return the cells of every policy over each base; none without the shared trace."""
    if not continuous.is_shared(TRACE):
        return []
    work, _ = continuous.work_named(TRACE)
    plans: list[tuple[int, int, int | None]] = [(256, 0, QUICK_BATCHES if options.quick else None)]
    if not options.quick:
        plans += [(1024, 0, BATCHES), (1024, 512, BATCHES)]
    cells: list[Cell] = []
    for jobs, warm_up, count in plans:
        batches = kernel_batches.make_batches(work, jobs, count, warm_up)
        report_line(f"{len(batches)} batches of {jobs} jobs after {warm_up}")
        bases = {
            name: [kernel_batches.run_batch(batch, oracle(name).rules) for batch in batches]
            for name in BATCH_BASES
        }
        protocol = f"batches-{jobs}" + (f"-after-{warm_up}" if warm_up else "-from-empty")
        protocols = {protocol: list(range(len(batches)))}
        cells += (
            cells_of_short_batches(batches, bases, protocols, options)
            if jobs == 256
            else cells_of_long_batches(batches, bases, protocols, options)
        )
    return cells


def cells_of_short_batches(
    batches: list[JobBatch],
    bases: dict[str, list[ScheduleOutcome]],
    protocols: dict[str, list[int]],
    options: PoliciesOptions,
) -> list[Cell]:
    """Return the cells of batches of 256 jobs: Gittins, the networks with all seeds, and bounds."""
    contended = kernel_batches.contended_batches(batches, bases["fcfs"])
    protocols = protocols | {"batches-256-contended": contended}
    ours = [GITTINS, committed(family=options.model)]
    ours += [committed(*kind, family=options.model) for kind in QUEUES]
    cells: list[Cell] = []
    for policy in at_costs(options, *ours, SMALLEST, WAIT_BOUND):
        trained = [] if options.quick else seeds(policy)
        cells += cells_of(batches, bases, protocols, policy, trained)
    cells += cells_of_rltune(batches, bases, protocols)
    inverted = [kernel_batches.invert_walltimes(batch) for batch in batches]
    return cells + cells_of(inverted, bases, protocols, USE_BOUND)


def cells_of_rltune(
    batches: list[JobBatch],
    bases: dict[str, list[ScheduleOutcome]],
    protocols: dict[str, list[int]],
) -> list[Cell]:
    """Return the cells of RLTune's own network and allocation."""
    actor, random = read_weights(), np.random.default_rng(RLTUNE_SEED)
    ours = [run_rltune(batch, actor, random) for batch in batches]
    return [
        cell
        for name, base in bases.items()
        for cell in cells_over(batches, (name, base), protocols, RLTUNE, [ours])
    ]


def cells_of_long_batches(
    batches: list[JobBatch],
    bases: dict[str, list[ScheduleOutcome]],
    protocols: dict[str, list[int]],
    options: PoliciesOptions,
) -> list[Cell]:
    """Return the cells of batches of 1,024 jobs: Gittins, and networks with preemption or not."""
    networks = [committed(family=options.model), committed(*QUEUES[0], family=options.model)]
    policies = [GITTINS, *networks]
    return [
        cell
        for policy in at_costs(options, *policies)
        for cell in cells_of(batches, bases, protocols, policy)
    ]


def at_costs(options: PoliciesOptions, *policies: NamedRules) -> list[NamedRules]:
    return [replace(named, rules=options.costs.applied(named.rules)) for named in policies]


def cells_of(
    batches: list[JobBatch],
    bases: dict[str, list[ScheduleOutcome]],
    protocols: dict[str, list[int]],
    policy: NamedRules,
    trained: Sequence[NamedRules] = (),
) -> list[Cell]:
    """Return the cells of a policy over each base.

    A protocol is the indices of the batches that count; `trained` are the networks of all
    training seeds.
    """
    cells: list[Cell] = []
    ours: list[ScheduleOutcome] = []
    by_seed: list[list[ScheduleOutcome]] = []
    for name, base in bases.items():
        if is_learned(policy) or not ours:
            ours = run_batches(batches, over(policy, name))
            by_seed = [run_batches(batches, over(seed, name)) for seed in trained]
        cells += cells_over(batches, (name, base), protocols, policy.name, [ours, *by_seed])
    return cells


def cells_over(
    batches: list[JobBatch],
    base: tuple[str, list[ScheduleOutcome]],
    protocols: dict[str, list[int]],
    policy: str,
    ours: Sequence[list[ScheduleOutcome]],
) -> list[Cell]:
    """Return the cells over one base, of the first outcomes of `ours`; the others are of seeds."""
    cells: list[Cell] = []
    for protocol, indices in protocols.items():
        fields: Json = {
            "trace": TRACE,
            "protocol": protocol,
            "load": None,
            "mode": "strict",
            "base": base[0],
            "runtime_source": "blind" if base[0] in BLIND else "oracle",
            "policy": policy,
        }
        sides = [select(batches, outcomes, indices) for outcomes in (base[1], *ours)]
        cells += compare(sides[0], sides[1], fields, BATCH_METRICS, sides[2:])
    return cells


def run_batches(batches: list[JobBatch], policy: NamedRules) -> list[ScheduleOutcome]:
    return [kernel_batches.run_batch(batch, at_start_of(policy, batch).rules) for batch in batches]


def at_start_of(policy: NamedRules, batch: JobBatch) -> NamedRules:
    """Return the policy with the preemption gate's history as of the beginning of the batch."""
    return replace(policy, rules=replace(policy.rules, large_at_start=batch.large))


def select(
    batches: list[JobBatch], outcomes: list[ScheduleOutcome], indices: list[int]
) -> PolicyJobs:
    return kernel_batches.collect_side(
        [batches[index] for index in indices], [outcomes[index] for index in indices]
    )
