"""Where a person can look on at a stack of this machine."""

from __future__ import annotations

from infra.supervisor.running import RunningStack


def watched(stack: RunningStack) -> dict[str, str]:
    """What is shown -> its address; empty where it was not asked for."""
    port = stack.ports["gateway"]["metrics"]
    return {"metrics": f"http://127.0.0.1:{port}/", "traces": stack.traces}


def watching(stack: RunningStack) -> list[str]:
    """A line for each, with its address."""
    return [f"{name:<9} {address}" for name, address in watched(stack).items() if address]
