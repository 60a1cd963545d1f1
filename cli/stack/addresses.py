"""Addresses of the metrics and traces of a local stack."""

from __future__ import annotations

from infra.supervisor.running import RunningStack


def monitoring_addresses(stack: RunningStack) -> dict[str, str]:
    """Return the addresses of metrics and traces; empty if not started."""
    port = stack.ports["gateway"]["metrics"]
    return {"metrics": f"http://127.0.0.1:{port}/", "traces": stack.traces}


def node_lines(stack: RunningStack) -> list[str]:
    """Return the addresses that nodes use: of the gateway, which they join, and of executors."""
    from infra.supervisor.launch import executors_of_agents
    from infra.supervisor.listening import LOOPBACK, Listen
    from infra.supervisor.stack import SERVICES

    if not stack.gateway:
        return []
    ports = [stack.ports.get(name, {}).get("http") for name in executors_of_agents(SERVICES)]
    listen = Listen(stack.host or LOOPBACK)
    executors = [listen.url(port, stack.tls) for port in ports if port]
    return [f"gateway   {stack.gateway}", *(f"executor  {url}" for url in executors)]


def address_lines(stack: RunningStack) -> list[str]:
    """Return one line per address."""
    return [
        f"{name:<9} {address}" for name, address in monitoring_addresses(stack).items() if address
    ]
