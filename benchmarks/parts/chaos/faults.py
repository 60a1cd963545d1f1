"""Faults that are injected into a stack: signals, a second writer, noise, lost bytes."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from configparser import RawConfigParser
from contextlib import contextmanager, suppress
from pathlib import Path

from infra.machine.process import Running, spawn
from infra.supervisor import supervise

POLL_S = 0.05


def program(data_dir: Path, name: str) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of a supervised service, as configured in supervisord."""
    configuration = RawConfigParser(strict=False)
    configuration.read(data_dir / "supervisord.conf")
    section = {k: v.replace("%%", "%") for k, v in configuration.items(f"program:{name}")}
    variables = re.findall(r'(\w+)="([^"]*)"', section["environment"])
    return shlex.split(section["command"]), dict(variables)


async def pid_of(data_dir: Path, name: str) -> int:
    """Return the pid of a supervised process; wait while it is being restarted."""
    while not (pid := await asyncio.to_thread(supervise.pid_of, data_dir, name)):
        await asyncio.sleep(POLL_S)
    return pid


async def pids(data_dir: Path) -> dict[str, int]:
    """Return the pid of each service; a different one later means that it was restarted."""
    states = await asyncio.to_thread(supervise.status, data_dir)
    return {state.name: state.pid for state in states if state.name not in ("broker", "postgres")}


async def send_signal(data_dir: Path, name: str, number: signal.Signals) -> int:
    """Send a signal to a supervised process; return its pid."""
    pid = await pid_of(data_dir, name)
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    return pid


@contextmanager
def second_writer(data_dir: Path, name: str, lanes: int) -> Iterator[Running]:
    """Run a second copy of a decider on all lanes, outside the consumer group of the first."""
    command, variables = program(data_dir, name)
    folder = data_dir / f"rival-{name}"
    env = (
        dict(os.environ)
        | variables
        | {
            "BERTH_LANES": ",".join(str(lane) for lane in range(lanes)),
            "BERTH_INSTANCE": f"rival-{name}",
            "BERTH_DATA": str(folder),
            "BERTH_METRICS_PORT": "0",
        }
    )
    folder.mkdir()
    process = spawn(f"rival-{name}", command, folder / "rival.log", env)
    try:
        yield process
    finally:
        process.kill()


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """SIGSTOP the process until the block ends."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


NOISE: tuple[Callable[[random.Random], bytes], ...] = (
    lambda draw: draw.randbytes(draw.randint(0, 64)),
    lambda _: b"[" * 500,
    lambda _: b'{"specversion":"1.0","id":"x","source":"/x","type":"job.destroy.v1","data":{}}',
    lambda _: b'{"specversion":"1.0","id":"x","source":"/x","type":"job.submit.v1","data":{"a":1}}',
    lambda draw: b'{"specversion":"0.3","id":"%d"}' % draw.randrange(10**9),
    lambda _: (
        b'{"specversion":"1.0","id":"\\u0000","source":"/x","type":"job.submit.v1","data":1e999}'
    ),
)
"""Generators of records that cannot be decoded."""


def malformed(draw: random.Random) -> bytes:
    """Return a record of a random kind that cannot be decoded."""
    return draw.choice(NOISE)(draw)


def truncate_newest_segment(folder: Path, share: float) -> int:
    """Cut a share off the end of a partition's newest segment; return the number of bytes.

    The broker must not be running.
    """
    segment = max(folder.glob("*.log"))
    size = segment.stat().st_size
    remaining = int(size * (1 - share))
    os.truncate(segment, remaining)
    return size - remaining


@contextmanager
def filled_disk(folder: Path) -> Iterator[int]:
    """Take every free byte of the file system below `folder` until the block ends."""
    path = folder / "filler"
    taken = 0
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            taken += file.write(b"\0" * 65536)
    try:
        yield taken
    finally:
        path.unlink()


async def wait_until(condition: Callable[[], bool], within_s: float) -> float | None:
    """Return the seconds until the condition was true; None if it was not within that time."""
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        if await asyncio.to_thread(condition):
            return time.monotonic() - began
        await asyncio.sleep(POLL_S)
    return None
