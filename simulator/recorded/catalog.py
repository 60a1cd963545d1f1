"""Every policy of an installation: where it is set, its decisions and needs, and its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, get_args

from services.priority.core.policies.base_policies import POLICIES
from shared.contracts.pools import BasePolicy
from shared.schedulers.in_pools import not_carried_out
from shared.schedulers.registry import scheduler_classes
from simulator.recorded.league import RUN_TIMES

IN_ROUNDS = "rounds:"
"""Prefix of schedulers behind `--policy` of `berth what-if`."""
SOURCES: dict[BasePolicy, str] = {
    "f1": "Carastan-Santos and de Camargo, SC'17",
    "wfp3": "Tang et al., CLUSTER'09",
    "unicep": "Tang et al., CLUSTER'09",
    "multifactor": "Slurm's priority/multifactor",
    "qssf": "Hu et al., SC'21 (Helios)",
    "las": "Gu et al., NSDI'19 (Tiresias)",
    "gittins": "Gu et al., NSDI'19 (Tiresias)",
    "srsf": "Gu et al., NSDI'19, in Zhao et al., SIGCOMM'22",
}
"""Publications of base policies; the others are textbook rules."""


class CatalogRow(NamedTuple):
    """One policy. `simulated` is its name behind `--policy` of `berth what-if`."""

    name: str
    pool_setting: str
    """Setting of a pool that takes it; empty: no pool does."""
    simulated: str
    decides: tuple[str, ...]
    needs: tuple[str, ...]
    """Estimates without which it takes all jobs to be alike."""
    source: str


def policies() -> Iterator[CatalogRow]:
    """Yield base policies, then schedulers, each in the order of their names."""
    for policy in sorted(get_args(BasePolicy)):
        source = SOURCES.get(policy, "")
        yield CatalogRow(policy, "base_policy", policy, ("order",), needs_of(policy), source)
    for name, scheduler in scheduler_classes().items():
        setting = "" if not_carried_out(scheduler.decides) else "scheduler"
        yield CatalogRow(
            name, setting, IN_ROUNDS + name, scheduler.decides, scheduler.needs, scheduler.source
        )


def needs_of(policy: str) -> tuple[str, ...]:
    own = POLICIES.get(policy)
    if own is not None and own.source == "history":
        return ("history",)
    return ("run times",) if policy in RUN_TIMES else ()
