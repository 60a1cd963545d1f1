"""Receives the iterations and checkpoints that a worker reports, on a socket of its own.

The worker is not trusted: a datagram without its token, or of another form, is dropped, and what is
kept is bounded. `reporter/README.md` has the form.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from berth_agent import reading as read
from berth_agent.core.iteration_rows import (
    MAX_PHASES,
    TRAIN,
    IterationRow,
    IterationRows,
    Kind,
    ProcessShape,
)
from berth_agent.core.progress_meter import MeasuredProgress, ProgressMeter
from berth_agent.linux.clocks import boot_ms

MAX_BYTES = 1024
MAX_PROCESSES = 16
"""Processes of one worker of which iterations are kept, those of the lowest ranks."""
MAX_READS = 1024
"""Datagrams in one call: a worker that never stops sending does not hold up the agent."""
CHECKPOINT = "checkpoint"
LARGEST_STEP = 2**53 - 1
LONGEST_S = 1e9
SECONDS = read.number(minimum=0, maximum=LONGEST_S)
COUNT = read.integer(minimum=0, maximum=LARGEST_STEP)
LARGEST_RANK = 2**31 - 1
MAX_AXES = 8
LABEL = re.compile(r"[a-z][a-z0-9_.-]{0,31}")


def labelled(reader: read.Reader[read.T], most: int) -> read.Reader[dict[str, read.T]]:
    """Read an object with names of phases or axes."""
    mapping = read.mapping(reader, most=most)

    def read_labelled(value: object, path: str) -> dict[str, read.T]:
        values = mapping(value, path)
        for name in values:
            if not LABEL.fullmatch(name):
                raise read.MalformedMessage(f"{path}: wrong name: {name[:64]!r}")
        return values

    return read_labelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram(read.Message):
    """One iteration, as the reporter sends it."""

    v: int
    """Version of the form."""
    token: str
    """Shown to this worker only."""
    rank: int
    """Rank of the process among those of its training."""
    step: int
    """Number of the iteration; after a restart it begins at a checkpoint."""
    iteration_s: float
    """Wall s."""
    own_s: float | None = None
    """s of own work."""
    wait_s: float | None = None
    """s of waiting for other ranks."""
    delay_s: float | None = None
    """s of own work in which the process waited for a processor of its host."""
    samples: int | None = None
    """Samples of the iteration."""
    steps_total: int | None = None
    """Iterations of the whole training, those before a restart included."""
    tokens: int | None = None
    """Tokens of the iteration."""
    iteration_kind: Kind = TRAIN
    """Its kind."""
    phases: dict[str, float] = field(default_factory=dict)
    """s of each phase."""
    layout: dict[str, int] = field(default_factory=dict)
    """Position of the process along each axis of parallelism."""
    microbatches: int | None = None
    """Micro-batches of an iteration on the process."""
    activations: int | None = None
    """Micro-batches of which the process can hold activations at once."""

    READERS: ClassVar = {
        "v": read.integer(minimum=1, maximum=1),
        "token": read.text(longest=256),
        "rank": read.integer(minimum=0, maximum=LARGEST_RANK),
        "step": COUNT,
        "iteration_s": SECONDS,
        "own_s": read.optional(SECONDS),
        "wait_s": read.optional(SECONDS),
        "delay_s": read.optional(SECONDS),
        "samples": read.optional(COUNT),
        "steps_total": read.optional(read.integer(minimum=1, maximum=LARGEST_STEP)),
        "tokens": read.optional(COUNT),
        "iteration_kind": read.choice("train", "evaluation", "checkpoint"),
        "phases": labelled(SECONDS, MAX_PHASES),
        "layout": labelled(read.integer(minimum=0, maximum=LARGEST_RANK), MAX_AXES),
        "microbatches": read.optional(COUNT),
        "activations": read.optional(COUNT),
    }
    REQUIRED: ClassVar = frozenset({"v", "token", "rank", "step", "iteration_s"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDatagram(read.Message):
    """A checkpoint that is complete, as the reporter sends it."""

    v: int
    """Version of the form."""
    token: str
    """Shown to this worker only."""
    rank: int
    """Rank of the process among those of its training."""
    step: int
    """Number of the last iteration in it."""

    READERS: ClassVar = {
        "v": read.integer(minimum=1, maximum=1),
        "token": read.text(longest=256),
        "rank": read.integer(minimum=0, maximum=LARGEST_RANK),
        "step": COUNT,
    }
    REQUIRED: ClassVar = frozenset({"v", "token", "rank", "step"})


@dataclass(frozen=True, slots=True)
class WrittenCheckpoint:
    """The last checkpoint of a worker, and when the node heard of it."""

    step: int
    at_boot_ms: int


def parse(data: bytes) -> Datagram | CheckpointDatagram:
    """Read one datagram; its field `kind` names a checkpoint. Raises ValueError."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"datagram too long: {len(data)} bytes or more; {MAX_BYTES} are allowed")
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("datagram nested too deeply; one flat object is allowed") from None
    if isinstance(document, dict) and document.get("kind") == CHECKPOINT:
        return CheckpointDatagram.from_json(document)
    return Datagram.from_json(document)


ProcessIterations = dict[int, IterationRows]
"""By rank of the process in its training."""


class TelemetryReceiver:
    """The socket of one worker, in a folder that only the agent may write.

    Where several processes of the worker report, as under torchrun, that of the lowest rank speaks
    for the worker's checkpoints and progress: they all wait for each other.
    """

    def __init__(
        self, path: str, token: str, allocation_id: str, uid: int = -1, gid: int = -1
    ) -> None:
        """Bind the socket for a user, by default the agent's own. Raises OSError, ValueError.

        A socket at the path is one of an earlier agent, and is replaced; workers find the new one.
        """
        if not token:
            raise ValueError("no token; at least one character is required")
        self._path = path
        self._token = token.encode()
        self.allocation_id = allocation_id
        self.rank = int(allocation_id.rpartition("/")[2])
        """Rank of the worker in its gang."""
        self._lowest_rank: int | None = None
        self._kept: dict[int, IterationRows] = {}
        """By rank of the process."""
        self._written: WrittenCheckpoint | None = None
        self._meter = ProgressMeter()
        self._socket = _bind(path, uid, gid)

    def fileno(self) -> int:
        """Return the descriptor, which is readable when iterations have arrived."""
        return self._socket.fileno()

    def take_iterations(self) -> ProcessIterations:
        """Return the iterations since the last call by rank of the process, the lowest first.

        A checkpoint that arrives with them is kept for `take_checkpoint`.
        """
        for data in self._received():
            with contextlib.suppress(ValueError):
                self._keep(parse(data))
        kept, self._kept = self._kept, {}
        return dict(sorted(kept.items()))

    def take_checkpoint(self) -> WrittenCheckpoint | None:
        """Return the newest checkpoint that was read since the last call."""
        written, self._written = self._written, None
        return written

    def progress(self) -> MeasuredProgress | None:
        """Return how far the worker is, if it reports a total and its pace is known."""
        return self._meter.measured()

    def close(self) -> None:
        """Remove the socket."""
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    def _received(self) -> Iterator[bytes]:
        for _ in range(MAX_READS):
            try:
                yield self._socket.recv(MAX_BYTES + 1)
            except BlockingIOError:
                return

    def _keep(self, datagram: Datagram | CheckpointDatagram) -> None:
        if not hmac.compare_digest(datagram.token.encode("utf-8", "replace"), self._token):
            return
        if isinstance(datagram, Datagram):
            self._keep_iteration(datagram)
        lowest = self._lowest_rank
        if lowest is not None and datagram.rank > lowest:
            return
        if lowest is not None and datagram.rank < lowest:
            self._written, self._meter = None, ProgressMeter()
        self._lowest_rank = datagram.rank
        if isinstance(datagram, CheckpointDatagram):
            self._written = WrittenCheckpoint(datagram.step, boot_ms())
        elif datagram.steps_total is not None:
            self._meter.note(datagram.step, datagram.steps_total, boot_ms())

    def _keep_iteration(self, datagram: Datagram) -> None:
        if datagram.rank not in self._kept and len(self._kept) == MAX_PROCESSES:
            highest = max(self._kept)
            if datagram.rank > highest:
                return
            del self._kept[highest]
        row = IterationRow(
            datagram.step,
            datagram.iteration_s,
            datagram.own_s,
            datagram.wait_s,
            datagram.samples,
            datagram.tokens,
            datagram.iteration_kind,
            datagram.phases,
            datagram.delay_s,
        )
        shape = ProcessShape(datagram.layout, datagram.microbatches, datagram.activations)
        self._kept.setdefault(datagram.rank, IterationRows()).add(row, shape)


def _bind(path: str, uid: int, gid: int) -> socket.socket:
    """Return a socket that only the user may send to, from its first moment."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    receiving = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        receiving.setblocking(False)
        os.fchmod(receiving.fileno(), 0o600)  # Linux gives the file this mode, less the umask
        receiving.bind(path)
        os.chown(path, uid, gid, follow_symlinks=False)
    except OSError:
        receiving.close()
        raise
    return receiving
