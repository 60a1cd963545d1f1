"""What a demo is told, and the numbers it goes by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infra.supervisor.running import Broker

DEMO_POOL = "demo"
LOCAL_POOL = "local"
TENANTS = ("vision", "language", "speech", "robotics")

JOBS = 200
SPEED = 600.0
SHORTEST_WALL_S, LONGEST_WALL_S = 40.0, 110.0
"""Of a replay whose speed is `auto`: of the three minutes of a check, starting, verifying and
stopping take the rest; few jobs need not take so long."""

WALL_S_PER_JOB = 0.1

GRACE_S = 120.0
PATIENCE = 2.0
"""A replay that takes more than its plan times this, plus the grace, is stuck."""


def replay_wall_s(jobs: int) -> float:
    """Wall seconds that a replay of so many jobs may take."""
    return min(LONGEST_WALL_S, max(SHORTEST_WALL_S, jobs * WALL_S_PER_JOB))


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """`speed` None picks a time scale at which the replay ends in time."""

    data_dir: Path
    trace: str
    jobs: int | None
    speed: float | None
    check: bool
    broker: Broker
    timeout_s: float | None = None
    seed: int = 0
    tracing: bool = False
    tls: bool = False
