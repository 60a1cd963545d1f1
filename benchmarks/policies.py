"""What Berth's deployed policy gains over what clusters run today, on real traces, base by base.

Continuous replay (60 % warm-up, the rest counts; loads 0.7, 0.9, 0.95, 1.1) and RLTune's batches.
Nothing called deployable uses an oracle or anything of the part of a trace that it is judged by.
`--out DIR` writes JSON, tables and plots. `--trace FILE` replays that trace alone; `--quick` ends
within 50 s.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.parts import continuous, report
from benchmarks.parts.cells import GAIN, METRICS, Cell, compared
from benchmarks.parts.command import Json, Say, serve
from benchmarks.parts.continuous import Replay, replay
from benchmarks.parts.rules import (
    EASY_FCFS,
    FAMILY,
    GITTINS,
    LAS,
    MULTIFACTOR,
    QSSF,
    QUEUES,
    SKIP_FCFS,
    SMALLEST,
    SRSF_ORACLE,
    STRICT_FCFS,
    Named,
    deployed,
    is_learned,
    oracle,
    over,
    seeds,
    staying,
)
from simulator.engine.trial import REGRET
from simulator.kernel import batches as windows
from simulator.metrics.outcome import ScheduleOutcome
from simulator.metrics.side import PolicyJobs
from simulator.workload.source import SYNTHETIC

LOADS = (0.7, 0.9, 0.95, 1.1)
LOAD = 0.9
SEEDED = (0.9, 0.95)
"""Loads at which the networks of all training seeds are judged."""
CLUSTERS = ("cluster03", "cluster04", "cluster07")
"""Of ITP, those with a thousand jobs and gangs; its tenants never share GPUs."""
CELL_BASES = (SKIP_FCFS, EASY_FCFS, SMALLEST, MULTIFACTOR, QSSF, STRICT_FCFS)
BATCHES, QUICK_BATCHES = 100, 40


@dataclass(frozen=True, slots=True)
class PoliciesOptions:
    trace: str = ""
    quick: bool = False
    model: str = FAMILY
    out: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A trace at a load: every rule's outcomes, one per cluster."""

    name: str
    load: float
    replays: list[Replay]
    ours: Named
    outcomes: dict[str, list[ScheduleOutcome]]
    seeds: dict[str, PolicyJobs]
    """What the network of each training seed made of it."""
    carried: dict[str, tuple[float, float]]
    """Work carried into and out of the window by some rules; see `continuous.carried`."""

    def side(self, named: Named) -> PolicyJobs:
        return continuous.side_of(self.outcomes[key(named)])


async def run(options: PoliciesOptions, say: Say) -> Json:
    """One JSON object: `best_deployable`, `cells`, and what each pool was."""
    began = time.process_time()
    ours = deployed(family=options.model)
    judged = [judge(*each, ours, options, say) for each in settings(options)]
    cells = [cell for each in judged for cell in continuous_cells(each)]
    if not options.trace:
        cells += batch_cells(options, say)
    first = next(each for each in judged if each.load == LOAD)
    result: Json = {
        "best_deployable": best(first),
        "replays": [described(each) for each in judged],
        "gain": GAIN,
        "cells": [cell.plain() for cell in cells],
        "cpu_s": round(time.process_time() - began, 1),
    }
    if options.out:
        report.write(Path(options.out), result)
    return result


def settings(options: PoliciesOptions) -> list[tuple[str, float, tuple[str | None, ...]]]:
    """(trace, load, clusters) of the replays."""
    if options.trace:
        return [(options.trace, LOAD, (None,))]
    known = [each for each in ALL if options.quick is False or each[0] == "helios_venus"]
    found = [
        (name, load, parts) for name, parts in known if continuous.is_shared(name) for load in LOADS
    ]
    if options.quick:
        found = [each for each in found if each[1] == LOAD]
    return found or [(SYNTHETIC, LOAD, (None,))]


ALL: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("helios_venus", (None,)),
    ("philly", (None,)),
    ("msft_itp", CLUSTERS),
    ("alibaba_pai_2020", (None,)),
    ("helios_vc_users", (None,)),
)


def judge(
    name: str,
    load: float,
    clusters: tuple[str | None, ...],
    ours: Named,
    options: PoliciesOptions,
    say: Say,
) -> Judged:
    replays = [replay(name, load, cluster) for cluster in clusters]
    say(f"{name} at load {load}: {sum(len(each.work) for each in replays):,} jobs")
    calm = deployed(preemption=False, family=options.model)
    candidates = [ours, GITTINS, calm, SMALLEST, SKIP_FCFS]
    taken = continuous.chosen_by_validation(replays, candidates, REGRET)
    rules = [SKIP_FCFS, EASY_FCFS, SRSF_ORACLE, SMALLEST, STRICT_FCFS, ours, taken]
    if not options.quick:
        rules += [MULTIFACTOR, QSSF, LAS, GITTINS]
        rules += [deployed(*each, family=options.model) for each in QUEUES if load == LOAD]
    outcomes: dict[str, list[ScheduleOutcome]] = {}
    for named in rules:
        if key(named) not in outcomes:
            outcomes[key(named)] = [each.run(named.rules) for each in replays]
    judged = Judged(replays[0].name.split("/")[0], load, replays, taken, outcomes, {}, {})
    if not options.quick and load in SEEDED:
        for seed in seeds(ours):
            made = [each.run(seed.rules) for each in judged.replays]
            judged.seeds[seed.name] = continuous.side_of(made)
    if not options.quick and load == LOAD:
        look_closer(judged)
    return judged


def look_closer(judged: Judged) -> None:
    """What is shown at one load alone: what it is worth that small jobs move for larger ones, and
    where utilisation comes from."""
    fixed = staying(judged.ours)
    judged.outcomes[key(fixed)] = [each.run(fixed.rules) for each in judged.replays]
    for named in (STRICT_FCFS, SKIP_FCFS, fixed, judged.ours, SRSF_ORACLE):
        judged.carried[key(named)] = continuous.carried(judged.replays, named.rules)


def key(named: Named) -> str:
    return f"{named.name}/{named.knows}/{named.rules.queue_mode}/{named.rules.preemption}"


def continuous_cells(judged: Judged) -> list[Cell]:
    ours = judged.side(judged.ours)
    trained = [*judged.seeds.values()] if is_learned(judged.ours) else []
    found: list[Cell] = []
    for base in CELL_BASES:
        if key(base) not in judged.outcomes:
            continue
        where: Json = {
            "trace": judged.name,
            "protocol": "continuous",
            "load": round(reached(judged), 3),
            "mode": base.rules.queue_mode,
            "base": base.name,
            "knows": base.knows,
            "policy": judged.ours.name,
        }
        found += compared(judged.side(base), ours, where, seeds=trained)
    return found


def reached(judged: Judged) -> float:
    weights = [each.capacity_gpus for each in judged.replays]
    return float(np.average([each.load for each in judged.replays], weights=weights))


def best(judged: Judged) -> Json:
    """The deployed policy on this trace; gains are positive where it is better."""
    ours, base = judged.side(judged.ours), judged.side(SKIP_FCFS)
    bound, easy = judged.side(SRSF_ORACLE), judged.side(EASY_FCFS)
    simple = min(float(judged.side(named).delay_s.mean()) for named in (SKIP_FCFS, SMALLEST))
    wait, skip_wait = float(ours.delay_s.mean()), float(base.delay_s.mean())
    oracle_wait = float(bound.delay_s.mean())
    headroom = skip_wait - oracle_wait
    return {
        "policy": judged.ours.name,
        "trace": judged.name,
        "nodes": [len(each.sizes) for each in judged.replays],
        "load": round(reached(judged), 4),
        "jobs": len(ours.jct_s),
        "mean_jct_s": round(float(ours.jct_s.mean()), 1),
        "mean_jct_gain_vs_skip_fcfs": round(1 - ours.jct_s.mean() / base.jct_s.mean(), 4),
        "mean_jct_over_srsf_oracle": round(float(ours.jct_s.mean() / bound.jct_s.mean()), 4),
        "mean_jct_gain_vs_easy_fcfs_true": round(1 - ours.jct_s.mean() / easy.jct_s.mean(), 4),
        "mean_wait_s": round(wait, 1),
        "mean_wait_gain_vs_skip_fcfs": round(1 - wait / skip_wait, 4) if skip_wait else 0.0,
        "mean_wait_gain_vs_easy_fcfs_true": round(1 - wait / float(easy.delay_s.mean()), 4)
        if easy.delay_s.mean()
        else 0.0,
        "gap_closed_skip_fcfs_to_srsf_oracle": round((skip_wait - wait) / headroom, 4)
        if headroom > 0
        else None,
        "mean_wait_over_best_without_preemption": round(wait / simple, 4) if simple else None,
        "p99_wait_s": round(float(np.quantile(ours.delay_s, 0.99)), 1),
        "p99_wait_s_easy_fcfs_true": round(float(np.quantile(easy.delay_s, 0.99)), 1),
        "utilisation": round(continuous.use_of(judged.outcomes[key(judged.ours)]), 4),
        "utilisation_skip_fcfs": round(continuous.use_of(judged.outcomes[key(SKIP_FCFS)]), 4),
    }


def described(judged: Judged) -> Json:
    return {
        **best(judged),
        "training_seeds": {
            "mean_wait_s": {
                name: round(float(side.delay_s.mean()), 1) for name, side in judged.seeds.items()
            },
            "utilisation": {
                name: round(float(side.use[0]), 4) for name, side in judged.seeds.items()
            },
            "worst_gap_closed": worst_gap(judged),
        },
        "carried": {
            name: {"into_window": round(low, 4), "out_of_window": round(high, 4)}
            for name, (low, high) in judged.carried.items()
        },
        "rules": {
            name: {
                "mean_wait_s": round(float(side.delay_s.mean()), 1),
                "mean_jct_s": round(float(side.jct_s.mean()), 1),
                "p99_wait_s": round(float(np.quantile(side.delay_s, 0.99)), 1),
                "all_jobs_mean_wait_s": round(everybody(outcomes), 1),
                "utilisation": round(continuous.use_of(outcomes), 4),
                "unfinished_or_never_fit": sum(int((~o.ended).sum()) for o in outcomes),
            }
            for name, outcomes in judged.outcomes.items()
            for side in [continuous.side_of(outcomes)]
        },
    }


def worst_gap(judged: Judged) -> float | None:
    """Share of the gap from skip-FCFS to the oracle that the worst seed closes."""
    base = float(judged.side(SKIP_FCFS).delay_s.mean())
    headroom = base - float(judged.side(SRSF_ORACLE).delay_s.mean())
    if not judged.seeds or headroom <= 0:
        return None
    worst = max(float(side.delay_s.mean()) for side in judged.seeds.values())
    return round((base - worst) / headroom, 4)


def everybody(outcomes: list[ScheduleOutcome]) -> float:
    """Over all jobs of the trace, so that nobody starves unseen before the window."""
    delays = np.concatenate([(o.jct_s - o.duration_s)[o.fits] for o in outcomes])
    return float(delays.mean())


BATCH_METRICS = [name for name in METRICS if name != "p99_wait_s"]
BATCH_BASES = ("fcfs", "multifactor", "f1", "wfp3", "sjf", "unicep")
BLIND = frozenset({"fcfs", "multifactor"})
BATCH_BOUND = replace(SRSF_ORACLE, name="srsf, the oracle's bound")
USE_BOUND = replace(oracle("sjf", "skip"), name="longest first, the oracle's bound of use")


def batch_cells(options: PoliciesOptions, say: Say) -> list[Cell]:
    """RLTune's protocol on Venus: blocking bases; ours over each, however a pool may be run.

    The last two know all run times: nobody waits much less than where the shortest goes first and
    stops others, and hardly anybody uses much more, without stops, than where the longest does.
    """
    if not continuous.is_shared("helios_venus"):
        return []
    work, _ = continuous.work_named("helios_venus")
    plans: list[tuple[int, int, int | None]] = [(256, 0, QUICK_BATCHES if options.quick else None)]
    if not options.quick:
        plans += [(1024, 0, BATCHES), (1024, 512, BATCHES)]
    ours = deployed(family=options.model)
    others = [deployed(*each, family=options.model) for each in QUEUES]
    found: list[Cell] = []
    for jobs, warm_up, count in plans:
        batches = windows.make_batches(work, jobs, count, warm_up)
        say(f"{len(batches)} batches of {jobs} jobs after {warm_up}")
        bases = {
            name: [windows.run_batch(each, oracle(name).rules) for each in batches]
            for name in BATCH_BASES
        }
        protocol = f"batches-{jobs}" + (f"-after-{warm_up}" if warm_up else "-from-empty")
        protocols = {protocol: list(range(len(batches)))}
        if jobs == 256:
            protocols["batches-256-contended"] = windows.contended_batches(batches, bases["fcfs"])
        policies = [ours, *(others if jobs == 256 else others[:1])]
        if jobs == 256:
            policies += [SMALLEST, BATCH_BOUND]
        for policy in policies:
            judges = seeds(policy) if jobs == 256 and not options.quick else []
            found += of_batches(batches, bases, protocols, policy, judges)
        if jobs == 256:
            turned = [windows.invert_walltimes(each) for each in batches]
            found += of_batches(turned, bases, protocols, USE_BOUND)
    return found


def of_batches(
    batches: list[windows.JobBatch],
    bases: dict[str, list[ScheduleOutcome]],
    protocols: dict[str, list[int]],
    policy: Named,
    judges: Sequence[Named] = (),
) -> list[Cell]:
    """Cells of a policy over each base; a protocol is the places of the batches that count, and
    `judges` are the networks of all training seeds."""
    found: list[Cell] = []
    own: list[ScheduleOutcome] = []
    trained: list[list[ScheduleOutcome]] = []
    for name, theirs in bases.items():
        if is_learned(policy) or not own:
            own = played(batches, over(policy, name))
            trained = [played(batches, over(seed, name)) for seed in judges]
        for protocol, places in protocols.items():
            where: Json = {
                "trace": "helios_venus",
                "protocol": protocol,
                "load": None,
                "mode": "strict",
                "base": name,
                "knows": "blind" if name in BLIND else "oracle",
                "policy": policy.name,
            }
            sides = [side_at(batches, each, places) for each in (theirs, own, *trained)]
            found += compared(sides[0], sides[1], where, BATCH_METRICS, sides[2:])
    return found


def played(batches: list[windows.JobBatch], policy: Named) -> list[ScheduleOutcome]:
    return [windows.run_batch(each, gated(policy, each).rules) for each in batches]


def side_at(
    batches: list[windows.JobBatch], outcomes: list[ScheduleOutcome], places: list[int]
) -> PolicyJobs:
    return windows.collect_side([batches[at] for at in places], [outcomes[at] for at in places])


def gated(policy: Named, batch: windows.JobBatch) -> Named:
    """What the gate would have known when the batch began."""
    return replace(policy, rules=replace(policy.rules, large_at_start=batch.large))


if __name__ == "__main__":
    serve(run, PoliciesOptions, __doc__ or "")
