"""The rules that a comparison names: bases as clusters run them, and what Berth deploys."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from shared.contracts.access import LOG_SCORE_MARGIN
from simulator.engine.models import model_path
from simulator.kernel.network import theta_of
from simulator.kernel.run import Rules

FAMILY = "berth"
LEARNED = "learned:"
SEEDS = Path(__file__).resolve().parents[2] / "training" / "seeds"


@dataclass(frozen=True, slots=True)
class Named:
    """Rules and how a table calls them. `knows`: blind, history or oracle."""

    name: str
    knows: str
    rules: Rules


def oracle(policy: str, mode: str = "strict") -> Named:
    return Named(policy, "oracle", Rules(policy, mode, runtime="oracle"))  # type: ignore[arg-type]


def blind(policy: str, mode: str = "strict") -> Named:
    return Named(policy, "blind", Rules(policy, mode, runtime="oracle"))  # type: ignore[arg-type]


SKIP_FCFS = blind("fcfs", "skip")
STRICT_FCFS = blind("fcfs", "strict")
EASY_FCFS = Named("fcfs", "oracle", Rules("fcfs", "easy", runtime="oracle"))
SMALLEST = blind("smallest_first", "skip")
MULTIFACTOR = blind("multifactor", "skip")
QSSF = Named("qssf", "history", Rules("qssf"))
SRSF_ORACLE = Named(
    "srsf", "oracle", Rules("srsf", runtime="oracle", preemption=True, large_gang_share=1.0)
)
LAS = Named("las", "blind", Rules("las", preemption=True, large_gang_share=1.0))
GITTINS = Named(
    "gittins", "history", Rules("gittins", preemption=True, preempt_margin=LOG_SCORE_MARGIN)
)


QUEUES = (False, True), (True, False), (False, False)
"""Ways in which a pool may be run beside the one by default: (preemption, history)."""


def deployed(preemption: bool = True, history: bool = True, family: str = FAMILY) -> Named:
    """The committed network for a pool that is run like this; none knows what it is judged by."""
    kind = "preempt" if preemption else "queue"
    return network(f"{family}-{kind}" + ("" if history else "-blind"), preemption, history)


def network(name: str, preemption: bool, history: bool) -> Named:
    path = model_path(name)
    rules = Rules(
        "learned",
        preemption=preemption,
        preempt_margin=LOG_SCORE_MARGIN,
        runtime="history" if history else "none",
        band=json.loads(path.with_suffix(".json").read_bytes()).get("band", 0.0),
        theta=theta_of(path.read_bytes()),
    )
    return Named(f"learned:{name}", "history" if history else "blind", rules)


def over(named: Named, base: str) -> Named:
    """The same, re-ranking another base."""
    return replace(named, rules=replace(named.rules, base=base))


def staying(named: Named) -> Named:
    """The same, where nobody moves so that a larger job fits."""
    rules = replace(named.rules, defragment_after_s=None)
    return replace(named, name=f"{named.name}, nobody moves", rules=rules)


def is_learned(named: Named) -> bool:
    return named.rules.policy == "learned"


def seeds(named: Named) -> list[Named]:
    """The networks of every training seed, the deployed one among them; none of what was not
    trained."""
    if not is_learned(named):
        return []
    name = named.name.removeprefix(LEARNED)
    paths = sorted(SEEDS.glob(f"{name}-[0-9].onnx"))
    return [replace(named, name=path.stem, rules=trained(named.rules, path)) for path in paths]


def trained(rules: Rules, path: Path) -> Rules:
    return replace(rules, theta=theta_of(path.read_bytes()))
