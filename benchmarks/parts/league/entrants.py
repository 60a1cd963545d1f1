"""The policies and schedulers that compete in the league, and why others do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from benchmarks.parts.policies.rules import (
    EASY_PREDICTED,
    GITTINS,
    QSSF,
    SKIP_FCFS,
    SRSF_ORACLE,
    STRICT_FCFS,
    NamedRules,
    blind,
    committed,
)
from shared.contracts.pools import LOG_SCORE_MARGIN, BasePolicy
from shared.schedulers.registry import scheduler_classes
from simulator.kernel.run import POLICIES, RATIOS, Rules

OURS = "gittins, preemption"
BASE = "fcfs"
ROUNDS = "in rounds"
ORACLE = "srsf, true run times"
KNOWN = frozenset({"rates", "work_left"})
"""Estimates that the traces have: all GPUs of a pool are alike, and history predicts the rest."""
OPTIONAL = frozenset({"skew"})
"""Estimates without which a scheduler has a rule of its own publication."""
RUN_TIMES = ("sjf", "saf", "f1", "wfp3", "unicep")
PREEMPTIVE = ("srsf", "srtf", "las")
QUEUE_LEFT_OUT = {
    "priority_class": "orders as fcfs does: the traces have no classes",
    "fair_share": "needs tenants that share a pool; two traces name none, a third has one per pool",
}

ALIKE = {
    "fcfs_strict": "competes as `fcfs that blocks`",
    "gavel_blind": "is gavel: a pool has GPUs of one type",
    "gavel_exchange": "is gavel: a pool has GPUs of one type",
    "gavel_cost": "is any order: all GPUs cost the same",
    "gavel_makespan": "its objective is the end of a batch that has arrived",
    "allox": "matches jobs of one GPU alone",
}
"""Schedulers that decide nothing in pools of one type of GPUs, or for gangs that arrive."""
SLOW = ("gavel_finish_time", "gavel_water_filling", "hadar", "srsf")
"""With several linear programs a round, each node for each job, or work that is lost again and
again, a run takes some times as long."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A policy: rules of the queue, by the kernel, or a scheduler, in rounds.

    `runtime_source` is what it knows of run times: nothing (`blind`), what jobs that ended say
    (`history`), or the truth (`oracle`).
    """

    name: str
    runtime_source: str
    rules: Rules | None = None
    scheduler: str = ""

    @property
    def is_deployable(self) -> bool:
        return self.runtime_source != "oracle"


def entrants(quick: bool = False, slow: bool = False) -> list[Entrant]:
    """Return policies and schedulers, Berth's default first; a few of each kind if `quick`."""
    chosen = [*of_queues(), *of_rounds(slow)]
    few = {OURS, BASE, "learned, preemption", f"fcfs, {ROUNDS}", f"tiresias, {ROUNDS}"}
    return [own for own in chosen if not quick or own.name in few]


def of_queues() -> list[Entrant]:
    """Return the policies of live pools, by the kernel."""
    by_history = [NamedRules(name, "history", Rules(name, runtime="history")) for name in RUN_TIMES]
    named = {
        OURS: GITTINS,
        "learned, preemption": committed(),
        **{f"{name}, preemption": preemptive(name) for name in PREEMPTIVE},
        BASE: SKIP_FCFS,
        "fcfs that blocks": STRICT_FCFS,
        "fcfs, easy": EASY_PREDICTED,
        "smallest_first": blind("smallest_first", "skip"),
        "multifactor": blind("multifactor", "skip"),
        "gittins": NamedRules("gittins", "history", Rules("gittins")),
        "qssf": QSSF,
        **{own.name: own for own in by_history},
        "learned": committed(preemption=False),
        ORACLE: SRSF_ORACLE,
    }
    return [Entrant(name, own.runtime_source, own.rules) for name, own in named.items()]


def preemptive(name: str) -> NamedRules:
    """Return a base policy under which rank stops jobs, by the same protection as ours."""
    margin = LOG_SCORE_MARGIN if name in RATIOS else 0.0
    rules = replace(GITTINS.rules, policy=name, preempt_margin=margin, runtime="history")
    return NamedRules(name, "blind" if name == "las" else "history", rules)


def of_rounds(slow: bool) -> list[Entrant]:
    """Return the schedulers of the seam whose needs the traces fulfil."""
    return [
        Entrant(f"{name}, {ROUNDS}", "history" if "work_left" in own.needs else "blind", None, name)
        for name, own in scheduler_classes().items()
        if not unmet_need(name, slow)
    ]


def left_out(slow: bool = False) -> dict[str, str]:
    """Return the reason for each policy and scheduler that does not compete."""
    reasons = {name: QUEUE_LEFT_OUT[name] for name in get_args(BasePolicy) if name not in POLICIES}
    reasons |= {
        f"{name}, {ROUNDS}": reason
        for name in scheduler_classes()
        if (reason := unmet_need(name, slow))
    }
    return reasons


def unmet_need(name: str, slow: bool) -> str:
    """Return why the traces have no data for a scheduler, "" if they have."""
    own = scheduler_classes()[name]
    if missing := [need for need in own.needs if need not in KNOWN | OPTIONAL]:
        return f"needs {' and '.join(missing)}, which the traces do not have"
    if "gpus" in own.decides:
        return "decides numbers of GPUs, and no job was measured with others than it requested"
    if name in SLOW and not slow:
        return "takes some times the CPU of all others; `--slow` runs it"
    return ALIKE.get(name, "")
