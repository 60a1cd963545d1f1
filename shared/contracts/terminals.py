"""Terminals in workers of jobs: commands and events of access, and what travels in their sessions.

The event that opens a terminal is also what an executor admits it by: who holds the token whose
hash it has may connect, once and soon. So no terminal is open without a record of who opened it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from shared.contracts.base import Command, Event, JobId, Model, Name, command, event

ENTRY_PATH: Final = "/terminals/v1"
"""Path of terminals at executors for the gateway, `/<id>`: WebSockets with the token as bearer.
The first message is the request, as text; the others are frames."""
ADMITTED_MS: Final = 60_000
"""Time after a terminal was opened in which the gateway connects; executors take it once."""
MAX_FRAME_BYTES: Final = 64 * 1024
"""Longest payload of a frame."""
MAX_WORDS, MAX_COMMAND_CHARS = 256, 32 * 1024
STDIN, STDIN_END, WINDOW = b"I", b"E", b"W"
"""Kinds of frames of the user: input, its end, and rows and columns, two bytes each."""
STDOUT, STDERR, STARTED, END, ALIVE = b"O", b"R", b"S", b"X", b"P"
"""Kinds of frames for the user: output, the program runs, its end as JSON, and nothing at all."""

TerminalId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class TerminalEnd(Model):
    """The payload of an end, as JSON; a node wrote it, and may be a hostile one."""

    reason: str = Field(pattern=r"^[a-z_]{1,64}$", description="machine-readable: snake_case")
    detail: str = Field("", max_length=1024, description="explanation")
    exit_code: int | None = Field(
        None, ge=0, le=255, description="of its program; absent: it was cut off"
    )


@command
class OpenTerminal(Command):
    """Open a terminal in a worker of a job, for the sender."""

    TYPE: ClassVar[str] = "terminal.open.v1"
    OWNER: ClassVar[str] = "access"
    terminal_id: TerminalId = Field(description="the terminal")
    job_id: JobId = Field(description="job of the worker")
    tenant: Name = Field(description="tenant that owns the job")
    pool: Name = Field(description="pool of the job")
    worker: int = Field(ge=0, lt=2**31, description="rank of the worker")
    program: str = Field(max_length=256, description="first word of the command")
    opened_by: str = Field(max_length=160, description="key or token of the sender")
    token_sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="sha256 of the token by which it is entered; private"
    )


@command
class CloseTerminal(Command):
    """Note the end of a terminal."""

    TYPE: ClassVar[str] = "terminal.close.v1"
    OWNER: ClassVar[str] = "access"
    terminal_id: TerminalId = Field(description="the terminal")
    job_id: JobId = Field(description="job of the worker")
    tenant: Name = Field(description="tenant that owns the job")
    reason: str = Field(max_length=64, description="machine-readable: snake_case")
    exit_code: int | None = Field(None, description="of its program; absent: it was cut off")
    open_ms: int = Field(ge=0, description="ms for which it was open")
    sent_bytes: int = Field(ge=0, description="input, bytes")
    received_bytes: int = Field(ge=0, description="output, bytes")


@event
class TerminalOpened(Event):
    """A terminal in a worker of a job was opened; executors admit it by this event."""

    TYPE: ClassVar[str] = "terminal.opened.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "job_id"
    terminal_id: TerminalId = Field(description="the terminal")
    job_id: JobId = Field(description="job of the worker")
    tenant: Name = Field(description="tenant that owns the job")
    pool: Name = Field(description="pool of the job")
    worker: int = Field(ge=0, description="rank of the worker")
    program: str = Field(description="first word of the command")
    opened_by: str = Field(description="key or token that opened it")
    token_sha256: str = Field(description="sha256 of the token by which it is entered; private")
    admitted_until: int = Field(ge=0, description="ms, after which the token is worth nothing")


@event
class TerminalClosed(Event):
    """A terminal has ended. It is missing where the gateway ended with it."""

    TYPE: ClassVar[str] = "terminal.closed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "job_id"
    terminal_id: TerminalId = Field(description="the terminal")
    job_id: JobId = Field(description="job of the worker")
    tenant: Name = Field(description="tenant that owns the job")
    reason: str = Field(description="machine-readable: snake_case")
    exit_code: int | None = Field(None, description="of its program; absent: it was cut off")
    open_ms: int = Field(ge=0, description="ms for which it was open")
    sent_bytes: int = Field(ge=0, description="input, bytes")
    received_bytes: int = Field(ge=0, description="output, bytes")
