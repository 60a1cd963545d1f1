"""Options and time limits of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infra.supervisor.running import Broker

DEMO_POOL = "demo"
LOCAL_POOL = "local"
TENANTS = ("vision", "language", "speech", "robotics")
ABUSER = "abuser"
"""A tenant that sends LLM requests without a pause, and no jobs."""

SHORTEST_WALL_S, LONGEST_WALL_S = 40.0, 110.0
"""Bounds of a replay of speed `auto`, so that a check ends within three minutes, with its start,
verification and stop."""

WALL_S_PER_JOB = 0.1

GRACE_S = 120.0
PATIENCE = 2.0
"""A replay that takes longer than its plan times this factor, plus the grace, has failed."""


def replay_wall_s(jobs: int) -> float:
    """Return the wall seconds planned for a replay of this many jobs."""
    return min(LONGEST_WALL_S, max(SHORTEST_WALL_S, jobs * WALL_S_PER_JOB))


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of a demo; `speed` None selects a time scale at which the replay ends in time."""

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
    llm: bool = True
