"""CPU of one report of a training loop, and of a bare `sendto` of the same datagram.

Rounds of a few calls each, in turn, so that the queue of the socket is never full; the receiver
reads between the rounds. The CPU of the calling thread is counted. Further cases are an iteration
with every field, a socket that is full, one that is gone, and a process outside of a Berth job.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.command import Json, serve
from berth_reporter import Reporter
from shared.process.progress import ReportLine

AT_MOST_US = 50.0
"""CPU that a call may cost a training loop."""
ROUND_CALLS = 8
"""Fewer than the queue of a socket holds by default (net.unix.max_dgram_qlen = 10)."""
TOKEN = "0123456789abcdef" * 4
VALUES = (0.0512, 0.0321, 0.0191, 256)
PHASES = {"forward": 0.011, "backward": 0.021, "comm.dp": 0.015, "comm.tp": 0.003}


@dataclass(frozen=True, slots=True)
class ReporterBenchOptions:
    """Enough for a stable median on a busy machine, in a second or two."""

    rounds: int = 2_000


async def run(options: ReporterBenchOptions, report_line: ReportLine) -> Json:
    """Return CPU us per call, by case, and the ratio of a report to a bare `sendto`."""
    if options.rounds < 2:
        raise ValueError(f"too few rounds: {options.rounds}; at least 2 are allowed")
    report_line(f"{options.rounds} rounds of {ROUND_CALLS} calls")
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        path = str(Path(folder) / "telemetry")
        cases = _measure(path, options.rounds)
    medians = {name: statistics.median(rounds_us) for name, rounds_us in cases.items()}
    ratio = medians["report"] / medians["sendto"]
    return {
        "bench": "reporter",
        "calls": options.rounds * ROUND_CALLS,
        "report_to_sendto": round(ratio, 2),
        "at_most_us": AT_MOST_US,
        "met": max(medians.values()) <= AT_MOST_US,
        "cpu_us": {name: _summary(rounds_us) for name, rounds_us in cases.items()},
    }


def _measure(path: str, rounds: int) -> dict[str, list[float]]:
    """Return CPU us per call in each round, by case."""
    environ = {"BERTH_TELEMETRY": path, "BERTH_TELEMETRY_TOKEN": TOKEN, "RANK": "0"}
    sender = Reporter(environ=environ, layout={"tp": 0, "dp": 3, "pp": 1})
    absent = Reporter(environ={})
    bare = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bare.setblocking(False)
    receiver = _receiver(path)
    sender.report(123_456, *VALUES)
    datagram = receiver.recv(65536)
    cases: dict[str, list[float]] = {"report": [], "sendto": [], "full": [], "gone": []}
    cases["iteration"], cases["absent"] = [], []
    for _ in range(rounds):
        cases["report"].append(_cpu_us(lambda: sender.report(123_456, *VALUES)))
        _empty(receiver)
        cases["iteration"].append(_cpu_us(lambda: _iterate(sender)))
        _empty(receiver)
        cases["sendto"].append(_cpu_us(lambda: bare.sendto(datagram, path)))
        _empty(receiver)
        _fill(bare, path)
        cases["full"].append(_cpu_us(lambda: sender.report(123_456, *VALUES)))
        _empty(receiver)
        cases["absent"].append(_cpu_us(lambda: absent.report(123_456, *VALUES)))
    receiver.close()
    Path(path).unlink()
    cases["gone"] = [_cpu_us(lambda: sender.report(123_456, *VALUES)) for _ in range(rounds)]
    bare.close()
    sender.close()
    return cases


def _iterate(sender: Reporter) -> None:
    """Report by the context manager, with every field."""
    with sender.iteration(123_456, samples=256, tokens=4096, steps_total=10**6) as iteration:
        iteration.own_s, iteration.wait_s = 0.0321, 0.0191
        iteration.phases = PHASES


def _receiver(path: str) -> socket.socket:
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.setblocking(False)
    receiver.bind(path)
    return receiver


def _empty(receiver: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while receiver.recv(65536):
            pass


def _fill(sender: socket.socket, path: str) -> None:
    with contextlib.suppress(BlockingIOError):
        while sender.sendto(b"full", path):
            pass


def _cpu_us(call: Callable[[], object]) -> float:
    begin_ns = time.thread_time_ns()
    for _ in range(ROUND_CALLS):
        call()
    return (time.thread_time_ns() - begin_ns) / ROUND_CALLS / 1000


def _summary(rounds_us: list[float]) -> Json:
    """Return the median and the 99th percentile of the rounds."""
    p99 = statistics.quantiles(rounds_us, n=100, method="inclusive")[98]
    return {"median": round(statistics.median(rounds_us), 2), "p99": round(p99, 2)}


if __name__ == "__main__":
    serve(run, ReporterBenchOptions, __doc__ or "")
