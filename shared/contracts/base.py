"""The base of every message: a frozen model with a hand-written wire name and version."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Millis = int
"""Milliseconds since the Unix epoch. The only clock that a core sees is the `at` of a record."""

ABSENT: Final = "absent"
"""The version of settings that do not exist yet."""
VERSION: Final = rf"^({ABSENT}|[0-9a-f]{{16}})$"
"""The pattern of the version that a change of settings is based on, `if_version`."""
NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
"""A whole `Name`, for `fullmatch`."""
JobId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._:-]+$")]
Name = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$")
]
"""The name of a tenant, pool, node or endpoint: lower case, since topic names contain it."""

Text = Annotated[str, Field(max_length=256, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
"""Free text without control characters: Postgres refuses NUL, and terminals obey the others."""


class Model(BaseModel):
    """A frozen message that ignores unknown fields, so that old readers accept newer writers."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)
    PARTS: ClassVar[str] = ""
    """Name of the field that lists what several senders said; empty: the message has one sender."""


class Event(Model):
    """A fact in the past tense, stored in one of the ledgers in `LEDGERS`."""

    TYPE: ClassVar[str]
    LEDGERS: ClassVar[tuple[str, ...]]
    SUBJECT: ClassVar[str]
    """Name of the field that holds the key within which order matters."""
    PUBLIC: ClassVar[bool] = True
    """False for the bookkeeping of one service, which is not republished to `events`."""

    @property
    def subject(self) -> str:
        return str(getattr(self, self.SUBJECT))


class Command(Model):
    """A request, in the imperative, that the service `OWNER` answers exactly once."""

    TYPE: ClassVar[str]
    OWNER: ClassVar[str]


class Local(Model):
    """An input that a shell passes to its own decider without an offset: a crash may lose it."""


EVENTS: dict[str, type[Event]] = {}
COMMANDS: dict[str, type[Command]] = {}


class UnknownType(Exception):
    """No contract of this version has that wire name: the sender is newer, or wrong."""


E = TypeVar("E", bound=type[Event])
C = TypeVar("C", bound=type[Command])


def event(cls: E) -> E:
    """Register an event under its wire name; raise TypeError if another class has that name."""
    if EVENTS.setdefault(cls.TYPE, cls) is not cls:
        raise TypeError(f"two events share one wire name: {cls.TYPE}")
    return cls


def command(cls: C) -> C:
    """Register a command under its wire name; raise TypeError if another class has that name."""
    if COMMANDS.setdefault(cls.TYPE, cls) is not cls:
        raise TypeError(f"two commands share one wire name: {cls.TYPE}")
    return cls
