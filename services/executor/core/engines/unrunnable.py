"""Gangs that no engine runs as they are; an engine may have more reasons of its own."""

from __future__ import annotations

from services.executor.core.engines.gangs import EngineGang
from shared.contracts.failures import Failure
from shared.contracts.secrets import secrets_named

WHOLE_GPU = 1000


def unrunnable(gang: EngineGang) -> Failure | None:
    """Return why the gang cannot run, with the value and the rule; None if it can."""
    launch = gang.launch
    if not gang.is_whole:
        known = f"{len(gang.workers)} of {launch.world_size} workers are on nodes of the engine"
        return unsupported(f"{known}: its pool must have no other backend")
    if not (launch.command or gang.pods):
        return Failure(reason="no_command", detail="command: empty", permanent=True)
    if launch.gpus and launch.gpu_milli != WHOLE_GPU:
        return unsupported(f"gpu_milli: {launch.gpu_milli}; whole GPUs are allowed", permanent=True)
    if launch.bundle:
        return unsupported("bundle: files do not travel there; use --workdir", permanent=True)
    if named := secrets_named(launch.env):
        variable = min(named)
        return unsupported(f"env.{variable}: secrets do not travel there", permanent=True)
    return None


def unsupported(detail: str, *, permanent: bool = False) -> Failure:
    """Return the failure of a gang that the engine cannot run."""
    return Failure(reason="engine_unsupported", detail=detail[:1024], permanent=permanent)
