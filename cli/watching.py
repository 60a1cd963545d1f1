"""Addresses of the metrics and traces of a local stack."""

from __future__ import annotations

from infra.supervisor.running import RunningStack


def watched(stack: RunningStack) -> dict[str, str]:
    """Return the addresses by kind; empty if not started."""
    port = stack.ports["gateway"]["metrics"]
    return {"metrics": f"http://127.0.0.1:{port}/", "traces": stack.traces}


def watching(stack: RunningStack) -> list[str]:
    """Return one line per address."""
    return [f"{name:<9} {address}" for name, address in watched(stack).items() if address]
