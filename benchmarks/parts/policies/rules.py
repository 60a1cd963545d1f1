"""The rules that a comparison names: bases as clusters run them, and what Berth deploys."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from shared.contracts.pools import LOG_SCORE_MARGIN
from simulator.engine.models import model_path
from simulator.kernel.network import theta_of
from simulator.kernel.run import Rules

FAMILY = "berth"
LEARNED = "learned:"
SEEDS = Path(__file__).resolve().parents[3] / "training" / "seeds"


@dataclass(frozen=True, slots=True)
class NamedRules:
    """Rules with their name in tables."""

    name: str
    runtime_source: str
    """Knowledge of run times: blind, history or oracle."""
    rules: Rules


def oracle(policy: str, mode: str = "strict") -> NamedRules:
    """Return a base that uses the true run times."""
    return NamedRules(policy, "oracle", Rules(policy, mode, runtime="oracle"))  # type: ignore[arg-type]


def blind(policy: str, mode: str = "strict") -> NamedRules:
    """Return a base whose order does not depend on run times."""
    return NamedRules(policy, "blind", Rules(policy, mode, runtime="oracle"))  # type: ignore[arg-type]


SKIP_FCFS = blind("fcfs", "skip")
STRICT_FCFS = blind("fcfs", "strict")
EASY_FCFS = NamedRules(
    "fcfs", "oracle", Rules("fcfs", "easy", runtime="oracle", easy_runtime="user")
)
EASY_PREDICTED = NamedRules("fcfs", "history", Rules("fcfs", "easy"))
"""EASY as pools run it; `EASY_FCFS`, which has the true run times, is a bound."""
SMALLEST = blind("smallest_first", "skip")
MULTIFACTOR = blind("multifactor", "skip")
QSSF = NamedRules("qssf", "history", Rules("qssf"))
PUBLISHED = Rules(preemption=True, large_gang_share=1.0, preemption_protection="residency")
"""Preemption as the papers have it: nothing bounds what a job or the pool loses by it."""
SRSF_ORACLE = NamedRules("srsf", "oracle", replace(PUBLISHED, policy="srsf", runtime="oracle"))
LAS = NamedRules("las", "blind", replace(PUBLISHED, policy="las"))
GITTINS = NamedRules(
    "gittins", "history", Rules("gittins", preemption=True, preempt_margin=LOG_SCORE_MARGIN)
)


QUEUES = (False, True), (True, False), (False, False)
"""Pool settings beside the default: (preemption, history)."""


def committed(preemption: bool = True, history: bool = True, family: str = FAMILY) -> NamedRules:
    """Return the committed network for these settings, not trained on evaluated data."""
    kind = "preempt" if preemption else "queue"
    return network(f"{family}-{kind}" + ("" if history else "-blind"), preemption, history)


def network(name: str, preemption: bool, history: bool) -> NamedRules:
    """Return the rules of a committed network."""
    path = model_path(name)
    rules = Rules(
        "learned",
        preemption=preemption,
        preempt_margin=LOG_SCORE_MARGIN,
        runtime="history" if history else "none",
        band=json.loads(path.with_suffix(".json").read_bytes()).get("band", 0.0),
        theta=theta_of(path.read_bytes()),
    )
    return NamedRules(f"learned:{name}", "history" if history else "blind", rules)


def over(named: NamedRules, base: str) -> NamedRules:
    """Return the same rules, re-ranking another base."""
    return replace(named, rules=replace(named.rules, base=base))


def without_defragmentation(named: NamedRules) -> NamedRules:
    """Return the same rules, where no job migrates so that a larger one fits."""
    rules = replace(named.rules, defragment_after_s=None)
    # The suffix is part of the keys of policies.json.
    return replace(named, name=f"{named.name}, no defragmentation", rules=rules)


def is_learned(named: NamedRules) -> bool:
    return named.rules.policy == "learned"


def seeds(named: NamedRules) -> list[NamedRules]:
    """Return the networks of all training seeds, the deployed one included; [] if not learned."""
    if not is_learned(named):
        return []
    name = named.name.removeprefix(LEARNED)
    paths = sorted(SEEDS.glob(f"{name}-[0-9].onnx"))
    return [replace(named, name=path.stem, rules=with_weights(named.rules, path)) for path in paths]


def with_weights(rules: Rules, path: Path) -> Rules:
    return replace(rules, theta=theta_of(path.read_bytes()))
