"""Convert old versions of a message, one version at a time, to the newest."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

Payload = dict[str, object]
Upcaster = Callable[[Payload], Payload]

UPCASTERS: dict[str, tuple[str, Upcaster]] = {}
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
