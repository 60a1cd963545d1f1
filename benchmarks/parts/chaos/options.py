"""Flags of `berth bench chaos`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from infra.supervisor.running import Broker

NOT_SETTINGS = ("out", "simulation", "checks")
"""Options that name files and change nothing of what is measured."""


@dataclass(frozen=True, slots=True)
class ChaosOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    broker: Broker = "kafka"
    jobs: int = 2000
    """Least number of jobs if `kills` is among the parts; the load ends with the last part."""
    per_s: float = 12.0
    pools: int = 1
    """The load submits to the pools in turn; at most three, the fourth lane has real processes."""
    kills: int = 3
    """Kills of each service."""
    alone: int = 3
    """Kills of each service in `recovery`, one service at a time."""
    killers: int = 1
    """Largest number of kills in progress at once, each of a different service."""
    minutes: float = 45.0
    """Limit on the kills and their load, even if the counts are not reached."""
    zombies: int = 100
    broker_kills: int = 3
    postgres_kills: int = 3
    slow_s: float = 20.0
    soak_minutes: float = 1.0
    malformed: int = 20_000
    malformed_per_s: float = 2000.0
    crowd: int = 30_000
    """Jobs that one tenant publishes at once."""
    lost_share: float = 0.5
    """Share of placement's ledger that `lost_tail` cuts off; 1 wipes it."""
    rounds: int = 40
    """Rounds of faults of `nodes`, and of `cuts`."""
    agents: int = 4
    """Nodes of `nodes`, `cuts` and `outage`."""
    busy: int = 0
    """Processes that compute all the time beside `cuts`."""
    stop_after_s: float = 10.0
    """Lease of the nodes; a fifth of the rounds outlast it."""
    outage_s: float = 20.0
    """How long the whole control plane is away in `outage`; from 60 on with default settings."""
    sessions: int = 0
    """Simulated agents that come back after `outage`, beside the nodes."""
    upgrade_jobs: int = 50
    upgrades: int = 5
    only: str = ""
    """Names of parts, separated by commas; empty: all."""
    seed: int = 1
    simulation: str = ""
    """File written by `python -m tests.chaos`, to be shown on the page."""
    checks: str = ""
    """JUnit report of the tests that are shown on the page."""
    out: str = ""
    """Folder of chaos.json and chaos.md, in which the parts of this run are replaced."""


def settings_of(options: ChaosOptions) -> dict[str, object]:
    """Return the options that determine how much was done."""
    left_out = (*NOT_SETTINGS, "only")
    return {name: getattr(options, name) for name in ChaosOptions.__slots__ if name not in left_out}


def command_of(options: ChaosOptions) -> str:
    """Return the command line that repeats this run."""
    defaults = ChaosOptions()
    flags = [
        f"--{name.replace('_', '-')} {shlex.quote(str(value))}"
        for name in ChaosOptions.__slots__
        if name not in NOT_SETTINGS and (value := getattr(options, name)) != getattr(defaults, name)
    ]
    return " ".join(["berth bench chaos", *flags])
