"""Sends a datagram per iteration and checkpoint to the socket that the agent named.

A datagram is one JSON object of at most 1 KiB; `reporter/README.md` has its fields. Nothing here
waits or raises into the training loop: what cannot be sent at once is lost.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from berth_reporter import datagram
from berth_reporter.iteration import Iteration

SOCKET = "BERTH_TELEMETRY"
TOKEN = "BERTH_TELEMETRY_TOKEN"
RANK = "RANK"
TRAIN = datagram.KINDS[0]


class Reporter:
    """Reports for one process; without the variables of an agent it does nothing.

    `lost` counts the iterations and checkpoints that could not be sent.
    """

    def __init__(
        self,
        rank: int | None = None,
        environ: Mapping[str, str] | None = None,
        layout: Mapping[str, int] | None = None,
        microbatches: int | None = None,
        activations: int | None = None,
    ) -> None:
        """Read the variables; `rank` is by default that in `RANK`, or 0.

        `layout` is the position of this process along each axis of parallelism, as
        `{"tp": 0, "dp": 3, "pp": 1}`: only processes at the same stage do the same work.
        `microbatches` are those of an iteration on this process, `activations` those of which it
        can hold the activations at once: advice on schedules is made with them.
        """
        counts = {"microbatches": microbatches, "activations": activations}
        variables = os.environ if environ is None else environ
        self.lost = 0
        self._path = ""
        self._head = ""
        self._checkpoint_head = ""
        self._socket: socket.socket | None = None
        try:
            self._open(variables, rank, layout, counts)
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
        tokens: int | None = None,
        phases: Mapping[str, float] | None = None,
        kind: str = TRAIN,
        delay_s: float | None = None,
    ) -> None:
        """Send one iteration: its number, wall s, s of own work, s of waiting, and its work.

        `steps_total` is the number of all iterations of the training: its end follows from that.
        `phases` are s by name, `kind` is `train`, `evaluation` or `checkpoint`, `delay_s` those s
        of own work in which the process waited for a processor of its host.
        """
        if self._socket is None:
            return
        try:
            body = f'{self._head}{int(step)},"iteration_s":{datagram.seconds(iteration_s)}'
            for name, value in (("own_s", own_s), ("wait_s", wait_s), ("delay_s", delay_s)):
                if value is not None:
                    body += f',"{name}":{datagram.seconds(value)}'
            counts = (("samples", samples), ("tokens", tokens), ("steps_total", steps_total))
            for name, count in counts:
                if count is not None:
                    body += f',"{name}":{int(count)}'
            if phases:
                body += f',"phases":{datagram.phase_times(phases)}'
            if kind != TRAIN:
                body += f',"iteration_kind":"{datagram.kind_of(kind)}"'
            self._send(self._socket, f"{body}}}")
        except Exception:  # the socket is full or gone, or a value is not a number
            self.lost += 1

    def checkpoint(self, step: int) -> None:
        """Send that a checkpoint is complete: the number of the last iteration in it."""
        if self._socket is None:
            return
        try:
            self._send(self._socket, f"{self._checkpoint_head}{int(step)}}}")
        except Exception:  # the socket is full or gone, or a value is not a number
            self.lost += 1

    @contextmanager
    def iteration(
        self,
        step: int,
        samples: int | None = None,
        steps_total: int | None = None,
        tokens: int | None = None,
        kind: str = TRAIN,
    ) -> Iterator[Iteration]:
        """Measure and report the iteration in the body, unless the body raises."""
        begin_s = time.perf_counter()
        measured = Iteration(samples, tokens, kind)
        yield measured
        self.send(step, time.perf_counter() - begin_s, measured, steps_total)

    def send(
        self, step: int, iteration_s: float, measured: Iteration, steps_total: int | None = None
    ) -> None:
        """Send an iteration that was measured."""
        self.report(
            step,
            iteration_s,
            measured.own_s,
            measured.wait_s,
            measured.samples,
            steps_total,
            measured.tokens,
            measured.phases,
            measured.kind,
            measured.delay_s,
        )

    def close(self) -> None:
        """Close the socket; later reports do nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open(
        self,
        variables: Mapping[str, str],
        rank: int | None,
        layout: Mapping[str, int] | None,
        counts: Mapping[str, int | None],
    ) -> None:
        path, token = variables.get(SOCKET, ""), variables.get(TOKEN, "")
        if not path or not token:
            return
        number = int(variables.get(RANK) or 0) if rank is None else int(rank)
        named = {name: int(count) for name, count in counts.items() if count is not None}
        self._head = datagram.head(token, number, layout, **named)
        self._checkpoint_head = datagram.head(token, number, None, kind=datagram.CHECKPOINT)
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def _send(self, sender: socket.socket, text: str) -> None:
        sender.sendto(datagram.encoded(text), self._path)


def report(
    step: int,
    iteration_s: float,
    own_s: float | None = None,
    wait_s: float | None = None,
    samples: int | None = None,
    steps_total: int | None = None,
    tokens: int | None = None,
    phases: Mapping[str, float] | None = None,
    kind: str = TRAIN,
    delay_s: float | None = None,
) -> None:
    """Report one iteration by the process's own reporter, which the first call makes."""
    own = default_reporter()
    work = (samples, steps_total, tokens, phases, kind)
    own.report(step, iteration_s, own_s, wait_s, *work, delay_s)


def checkpoint(step: int) -> None:
    """Report a complete checkpoint by the process's own reporter, which the first call makes."""
    default_reporter().checkpoint(step)


_default: Reporter | None = None


def default_reporter() -> Reporter:
    """Return the process's own reporter."""
    global _default
    if _default is None:
        _default = Reporter()
    return _default
