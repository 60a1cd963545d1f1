"""Convert old versions of a message, one version at a time, to the newest."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

Payload = dict[str, object]
Upcaster = Callable[[Payload], Payload]


def alive_without_send_time(payload: Payload) -> Payload:
    """Convert heartbeats that named incarnations alone: each of them counts."""
    nodes = payload["nodes"]
    if not isinstance(nodes, dict):
        raise TypeError(f"nodes: {type(nodes).__name__}; an object is allowed")
    alive = {node_id: {"incarnation": incarnation} for node_id, incarnation in nodes.items()}
    return {"executor_id": payload["executor_id"], "nodes": alive}


def endpoint_without_engines(payload: Payload) -> Payload:
    """Convert the settings of an endpoint whose only engine was emulated by the service."""
    kept = ("endpoint", "partition", "batch_tokens")
    return {name: payload[name] for name in kept if name in payload}


UPCASTERS: dict[str, tuple[str, Upcaster]] = {
    "nodes.alive.v1": ("nodes.alive.v2", alive_without_send_time),
    "endpoint.configure.v1": ("endpoint.configure.v2", endpoint_without_engines),
    "endpoint.configured.v1": ("endpoint.configured.v2", endpoint_without_engines),
}
"""Old wire name to the next wire name and the function that converts the data."""


class UpcastError(ValueError):
    """The data of an old message cannot be converted by its upcaster."""


def upcast(
    type_: str, data: bytes, upcasters: dict[str, tuple[str, Upcaster]] = UPCASTERS
) -> tuple[str, bytes]:
    """Return wire name and data in the newest version; a newest version is not even parsed.

    Raises UpcastError for old data that cannot be converted.
    """
    if type_ not in upcasters:
        return type_, data
    old = type_
    try:
        payload = msgspec.json.decode(data, type=dict[str, object])
        while type_ in upcasters:
            type_, convert = upcasters[type_]
            payload = convert(payload)
        return type_, msgspec.json.encode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        raise UpcastError(f"{old}: its data cannot be converted to {type_}") from None
