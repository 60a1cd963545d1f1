"""Addresses of the metrics and traces of a local stack."""

from __future__ import annotations

from infra.supervisor.running import RunningStack


def monitoring_addresses(stack: RunningStack) -> dict[str, str]:
    """Return the addresses of metrics and traces; empty if not started."""
    port = stack.ports["gateway"]["metrics"]
    return {"metrics": f"http://127.0.0.1:{port}/", "traces": stack.traces}


def address_lines(stack: RunningStack) -> list[str]:
    """Return one line per address."""
    return [
        f"{name:<9} {address}" for name, address in monitoring_addresses(stack).items() if address
    ]
