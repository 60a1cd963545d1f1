"""Sends a datagram per iteration and checkpoint to the socket that the agent named.

A datagram is one JSON object of at most 1 KiB; `reporter/README.md` has its fields. Nothing here
waits or raises into the training loop: what cannot be sent at once is lost.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SOCKET = "BERTH_TELEMETRY"
TOKEN = "BERTH_TELEMETRY_TOKEN"
RANK = "RANK"
FORMAT = 1
CHECKPOINT = "checkpoint"
MAX_BYTES = 1024
LONGEST_S = 1e9
"""A longer time is not a measurement; infinity and NaN, which JSON lacks, are refused with it."""


class Iteration:
    """An iteration that is running; its optional fields may be set until it ends."""

    __slots__ = ("own_s", "samples", "wait_s")

    def __init__(self, samples: int | None) -> None:
        self.samples = samples
        self.own_s: float | None = None
        self.wait_s: float | None = None


class Reporter:
    """Reports for one process; without the variables of an agent it does nothing.

    `lost` counts the iterations and checkpoints that could not be sent.
    """

    def __init__(self, rank: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        """Read the variables; `rank` is by default that in `RANK`, or 0."""
        variables = os.environ if environ is None else environ
        self.lost = 0
        self._path = ""
        self._head = ""
        self._checkpoint_head = ""
        self._socket: socket.socket | None = None
        try:
            self._open(variables, rank)
        except Exception:  # an unusable variable must not end a training
            self.close()

    def report(
        self,
        step: int,
        iteration_s: float,
        own_s: float | None = None,
        wait_s: float | None = None,
        samples: int | None = None,
        steps_total: int | None = None,
    ) -> None:
        """Send one iteration: its number, wall s, s of own work, s of waiting, and samples.

        `steps_total` is the number of all iterations of the training: its end follows from that.
        """
        if self._socket is None:
            return
        try:
            body = f"{self._head}{int(step)},"
            body += f'"iteration_s":{_seconds(iteration_s)}'
            if own_s is not None:
                body += f',"own_s":{_seconds(own_s)}'
            if wait_s is not None:
                body += f',"wait_s":{_seconds(wait_s)}'
            if samples is not None:
                body += f',"samples":{int(samples)}'
            if steps_total is not None:
                body += f',"steps_total":{int(steps_total)}'
            self._socket.sendto(_bounded(f"{body}}}".encode()), self._path)
        except Exception:  # the socket is full or gone, or a value is not a number
            self.lost += 1

    def checkpoint(self, step: int) -> None:
        """Send that a checkpoint is complete: the number of the last iteration in it."""
        if self._socket is None:
            return
        try:
            body = f"{self._checkpoint_head}{int(step)}"
            self._socket.sendto(_bounded(f"{body}}}".encode()), self._path)
        except Exception:  # the socket is full or gone, or a value is not a number
            self.lost += 1

    @contextmanager
    def iteration(
        self, step: int, samples: int | None = None, steps_total: int | None = None
    ) -> Iterator[Iteration]:
        """Measure and report the iteration in the body, unless the body raises."""
        begin_s = time.perf_counter()
        measured = Iteration(samples)
        yield measured
        elapsed_s = time.perf_counter() - begin_s
        self.report(step, elapsed_s, measured.own_s, measured.wait_s, measured.samples, steps_total)

    def close(self) -> None:
        """Close the socket; later reports do nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open(self, variables: Mapping[str, str], rank: int | None) -> None:
        path, token = variables.get(SOCKET, ""), variables.get(TOKEN, "")
        if not path or not token:
            return
        number = int(variables.get(RANK) or 0) if rank is None else int(rank)
        fields = {"v": FORMAT, "token": token, "rank": number, "step": 0}
        self._head = json.dumps(fields, separators=(",", ":"))[:-2]
        named = {"kind": CHECKPOINT, **fields}
        self._checkpoint_head = json.dumps(named, separators=(",", ":"))[:-2]
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)


def report(
    step: int,
    iteration_s: float,
    own_s: float | None = None,
    wait_s: float | None = None,
    samples: int | None = None,
    steps_total: int | None = None,
) -> None:
    """Report one iteration by the process's own reporter, which the first call makes."""
    _own().report(step, iteration_s, own_s, wait_s, samples, steps_total)


def checkpoint(step: int) -> None:
    """Report a complete checkpoint by the process's own reporter, which the first call makes."""
    _own().checkpoint(step)


_default: Reporter | None = None


def _own() -> Reporter:
    global _default
    if _default is None:
        _default = Reporter()
    return _default


def _bounded(datagram: bytes) -> bytes:
    """Return the datagram. Raises ValueError if it is too long for the agent."""
    if len(datagram) > MAX_BYTES:
        raise ValueError(f"datagram too long: {len(datagram)} bytes; {MAX_BYTES} are allowed")
    return datagram


def _seconds(value: float) -> str:
    """Return s as a JSON number. Raises ValueError."""
    seconds = float(value)
    if not 0 <= seconds < LONGEST_S:
        raise ValueError(f"not a time: {seconds}; 0 to {LONGEST_S} s are allowed")
    return f"{seconds:.9g}"
