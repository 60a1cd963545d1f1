"""Records a real training of four ranks over gloo on a loaded host, as the agent would report it.

    python -m tests.services.failslow.record_run FILE --load 8 --seconds 60 --slow 2

`--load` is how many busy processes run beside it, `--slow` the rank that is stopped and continued
in turns in the second half of the time. It needs a `python3` with PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

from berth_agent.telemetry_receiver import Datagram
from tests.reporter.sent import Sent
from tests.reporter.test_pytorch_ranks import RANKS, free_port, start

REPORT_S = 0.5
"""Time between two reports of an agent."""
PERIOD_S = 0.1
"""Of stopping and continuing."""
WARM_UP_S = 5.0
POLL_S = 0.02
Rows = list[list[list[float]]]
"""By rank: step, own work and the wait for a processor of each iteration, s."""


@contextmanager
def load(processes: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def drive(process: subprocess.Popen[bytes], begin_s: float, factor: float) -> None:
    """Let a rank run for 1 / factor of the time only, from a time on until it ends."""
    time.sleep(max(0.0, begin_s - time.monotonic()))
    while process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(PERIOD_S * (1 - 1 / factor))
        process.send_signal(signal.SIGCONT)
        time.sleep(PERIOD_S / factor)


def row(datagram: Datagram) -> list[float]:
    return [datagram.step, round(datagram.own_s or 0.0, 5), round(datagram.delay_s or 0.0, 5)]


def record(seconds: float, slow: int | None, factor: float) -> list[Rows]:
    """Return the reports, oldest first."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        receivers = [Sent(folder / str(rank)) for rank in range(RANKS)]
        port = free_port()
        ranks = [start(rank, port, sent, seconds + 60) for rank, sent in enumerate(receivers)]
        try:
            while not receivers[0].datagrams():
                time.sleep(POLL_S)
            collected(receivers, WARM_UP_S)
            if slow is not None:
                half_s = time.monotonic() + seconds / 2
                Thread(target=drive, args=(ranks[slow], half_s, factor), daemon=True).start()
            return [collected(receivers, REPORT_S) for _ in range(round(seconds / REPORT_S))]
        finally:
            for process in ranks:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()


def collected(receivers: list[Sent], seconds: float) -> Rows:
    """Return what the ranks send in so long: a socket holds few datagrams."""
    rows: Rows = [[] for _ in receivers]
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        for own, sent in zip(rows, receivers, strict=True):
            own += map(row, sent.datagrams())
        time.sleep(POLL_S)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--load", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--slow", type=int)
    parser.add_argument("--factor", type=float, default=2.0)
    options = parser.parse_args()
    before = os.getloadavg()[0]
    with load(options.load):
        reports = record(options.seconds, options.slow, options.factor)
    recorded = {
        "python": sys.version.split()[0],
        "cpus": os.cpu_count(),
        "load_before": round(before, 1),
        "busy_processes": options.load,
        "slow": options.slow,
        "factor": options.factor,
        "reports": reports,
    }
    options.file.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
