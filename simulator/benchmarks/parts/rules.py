"""The rules that a comparison names: bases as clusters run them, and what Berth deploys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from simulator.engine.models import FOLDER
from simulator.engine.options import MARGIN
from simulator.kernel.network import theta_of
from simulator.kernel.run import Rules

SEEDS = Path(__file__).resolve().parents[3] / "training" / "seeds"


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
GITTINS = Named("gittins", "history", Rules("gittins", preemption=True, preempt_margin=MARGIN))


def deployed(name: str = "berth-preempt", preemption: bool = True) -> Named:
    """The committed network of that name; no oracle, no knowledge of the evaluated part."""
    theta = theta_of((FOLDER / f"{name}.onnx").read_bytes())
    rules = Rules("learned", preemption=preemption, preempt_margin=MARGIN, theta=theta)
    return Named(
        f"learned:{name}" + ("" if preemption else " without preemption"), "history", rules
    )


def seeds(name: str) -> list[Named]:
    """The networks of every training seed, the deployed one among them."""
    ours = deployed(name)
    found = sorted(SEEDS.glob(f"{name}-*.onnx"))
    return [
        replace(ours, name=path.stem, rules=replace(ours.rules, theta=theta_of(path.read_bytes())))
        for path in found
    ]
