"""Wire names to models and back."""

from __future__ import annotations

from shared.contracts import access, faults, jobs, llm, nodes, placement, ranking, rejected, reports
from shared.contracts.base import COMMANDS, EVENTS, Command, Event, Model, UnknownType
from shared.contracts.upcast import upcast

MODULES = (access, faults, jobs, llm, nodes, placement, ranking, rejected, reports)
"""Importing them fills the registries."""


def decode_event(type_: str, data: bytes) -> Event:
    """The event of that wire name; old versions are lifted to the newest first.

    Raises UnknownType for a name of no contract, pydantic.ValidationError for bad data, NotLifted
    for bad data of an old version.
    """
    type_, data = upcast(type_, data)
    cls = EVENTS.get(type_)
    if cls is None:
        raise UnknownType(type_)
    return cls.model_validate_json(data)


def encode_event(event: Event) -> bytes:
    return event.model_dump_json(exclude_none=True).encode()


def decode_command(type_: str, data: bytes) -> Command:
    """The command of that wire name; raises as `decode_event` does."""
    type_, data = upcast(type_, data)
    cls = COMMANDS.get(type_)
    if cls is None:
        raise UnknownType(type_)
    return cls.model_validate_json(data)


def encode(message: Model) -> bytes:
    return message.model_dump_json(exclude_none=True).encode()


def owner_of(type_: str) -> str | None:
    """The one service that answers this command, None for an unknown name."""
    cls = COMMANDS.get(type_)
    return cls.OWNER if cls else None
