"""The broker loses the end of placement's ledger; every service that has read it must stop."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.command import Json
from benchmarks.parts.stack import LANE
from infra.supervisor import supervise
from infra.supervisor.stack import SERVICES

RUNBOOK = "see docs/operations/"
EXPECTED = frozenset({"placement", "projector", "publisher", "executor-virtual"})
"""Services that must stop at least."""


async def lost_tail(options: ChaosOptions, loaded: LoadedStack) -> Json:
    """Cut a share off placement's ledger while the broker is down; wait for services to stop."""
    data_dir = loaded.bench.stack.data_dir
    folder = data_dir / options.broker / "kafka" / "log" / f"placement-{LANE}"
    await faults.send_signal(data_dir, "broker", signal.SIGKILL)
    lost = faults.truncate_newest_segment(folder, options.lost_share)
    await faults.wait_until(loaded.broker_is_open, 60.0)
    began = time.time()
    await faults.wait_until(lambda: runbook_lines(data_dir).keys() >= EXPECTED, 90.0)
    lines = runbook_lines(data_dir)
    states = await asyncio.to_thread(supervise.status, data_dir)
    return {
        "bytes_lost": lost,
        "share_lost": options.lost_share,
        "stopped_and_said_why": sorted(lines),
        "after_s": round(time.time() - began, 1),
        "not_started_again": sorted(
            state.name for state in states if state.name in lines and not state.pid
        ),
        "a_line": lines.get("placement", ""),
    }


def runbook_lines(data_dir: Path) -> dict[str, str]:
    """Return the last log line that names a runbook, of each service that wrote one."""
    last_lines: dict[str, str] = {}
    for service in SERVICES:
        path = data_dir / "logs" / f"{service.name}.log"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        matching = [line for line in lines if RUNBOOK in line]
        if matching:
            last_lines[service.name] = matching[-1][:400]
    return last_lines
