"""Old versions of a message, lifted one version at a time to the one that the code knows."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

Payload = dict[str, object]
Upcaster = Callable[[Payload], Payload]

UPCASTERS: dict[str, tuple[str, Upcaster]] = {}
"""Old wire name -> (next wire name, how its data changes)."""


class UpcastError(ValueError):
    """An old message that its upcaster cannot read."""


def upcast(
    type_: str, data: bytes, upcasters: dict[str, tuple[str, Upcaster]] = UPCASTERS
) -> tuple[str, bytes]:
    """Name and data in the newest version; unchanged, and not even parsed, when it is that.

    Raises NotLifted for old data that are none.
    """
    if type_ not in upcasters:
        return type_, data
    old = type_
    try:
        payload = msgspec.json.decode(data, type=dict[str, object])
        while type_ in upcasters:
            type_, lift = upcasters[type_]
            payload = lift(payload)
        return type_, msgspec.json.encode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        raise UpcastError(f"{old}: its data cannot be lifted to {type_}") from None
