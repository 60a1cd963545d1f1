"""Ports of a stack: those of its last start if it kept its data: nodes find it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from infra.machine.process import free_ports, keep_ports
from infra.supervisor.running import Broker, NoStack, load

Ports = dict[str, dict[str, int]]
"""By service and name of the port."""


def earlier_ports(data_dir: Path, broker: Broker) -> Ports:
    """Return the ports of the last start; none where the broker lost its data, or is another one.

    The identities of nodes end with the embedded broker: no node looks for it.
    """
    try:
        stack = load(data_dir)
    except (NoStack, ValueError):
        return {}
    return stack.ports if stack.broker == broker and stack.durable else {}


def choose_ports(
    requested: Sequence[tuple[str, str]], earlier: Mapping[str, Mapping[str, int]]
) -> Ports:
    """Return a port for each service and name: the earlier one, if nothing else has taken it."""
    before = {key: port for key in requested if (port := earlier.get(key[0], {}).get(key[1]))}
    kept = keep_ports(before.values())
    others = iter(port for port in free_ports(len(requested) + len(kept)) if port not in kept)
    ports: Ports = {}
    for key in requested:
        service, name = key
        number = before.get(key, 0)
        ports.setdefault(service, {})[name] = number if number in kept else next(others)
    return ports
