"""What every message is: a frozen model with a hand-written wire name and version."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Millis = int
"""Milliseconds since the Unix epoch; the only clock a core sees is the `at` of a record."""

JobId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._:-]+$")]
Name = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$")
]
"""Tenants, pools, nodes and endpoints: lower case, so that they can be part of a topic's name."""

Text = Annotated[str, Field(max_length=256, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
"""Free text of a person: no control characters (Postgres refuses NUL, terminals obey the rest)."""


class Model(BaseModel):
    """Frozen; unknown fields are ignored: a reader of today accepts a writer of tomorrow."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Event(Model):
    """A fact, past tense, in the ledger of one of `LEDGERS`."""

    TYPE: ClassVar[str]
    LEDGERS: ClassVar[tuple[str, ...]]
    SUBJECT: ClassVar[str]
    """Name of the field that says whose fact it is: the key under which order matters."""
    PUBLIC: ClassVar[bool] = True
    """False: bookkeeping of one service; it stays in its ledger and is not republished."""

    @property
    def subject(self) -> str:
        return str(getattr(self, self.SUBJECT))


class Command(Model):
    """A wish, imperative; answered exactly once by `OWNER`."""

    TYPE: ClassVar[str]
    OWNER: ClassVar[str]


class Local(Model):
    """What a shell offers to its own decider without a ledger offset: it may be lost in a crash."""


EVENTS: dict[str, type[Event]] = {}
COMMANDS: dict[str, type[Command]] = {}


class UnknownType(Exception):
    """No contract of this installation has that wire name; the sender is newer, or wrong."""


E = TypeVar("E", bound=type[Event])
C = TypeVar("C", bound=type[Command])


def event(cls: E) -> E:
    """Register a public fact under its wire name; two classes may never share one."""
    if EVENTS.setdefault(cls.TYPE, cls) is not cls:
        raise TypeError(f"two events are called {cls.TYPE}")
    return cls


def command(cls: C) -> C:
    """Register a command under its wire name; two classes may never share one."""
    if COMMANDS.setdefault(cls.TYPE, cls) is not cls:
        raise TypeError(f"two commands are called {cls.TYPE}")
    return cls
