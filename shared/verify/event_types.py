"""The types of the events of a record, without what is in them, and which of them are published."""

from __future__ import annotations

from functools import cache

import msgspec

from shared.contracts.base import EVENTS


class _Typed(msgspec.Struct):
    type: str


_decode = msgspec.json.Decoder(list[_Typed]).decode


def types_of(events: msgspec.Raw) -> list[str]:
    """Return the types of the packed events of a record, in order."""
    return [event.type for event in _decode(events)]


@cache
def is_public(type_: str) -> bool:
    """Return whether the events of a type are published."""
    cls = EVENTS.get(type_)
    return cls is not None and cls.PUBLIC


@cache
def is_of_job(type_: str) -> bool:
    """Return whether the events of a type are in the histories of jobs."""
    return is_public(type_) and "job_id" in EVENTS[type_].model_fields
