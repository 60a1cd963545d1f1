"""What a chaos run does to a stack from outside: signals, a rival, floods, lost bytes."""

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
    """Command and environment of a supervised service, as the supervisor was told them."""
    known = RawConfigParser(strict=False)
    known.read(data_dir / "supervisord.conf")
    told = {k: v.replace("%%", "%") for k, v in known.items(f"program:{name}")}
    pairs = re.findall(r'(\w+)="([^"]*)"', told["environment"])
    return shlex.split(told["command"]), dict(pairs)


async def pid_of(data_dir: Path, name: str) -> int:
    """Of a supervised process that runs; waits while it is being restarted."""
    while not (pid := await asyncio.to_thread(supervise.pid_of, data_dir, name)):
        await asyncio.sleep(POLL_S)
    return pid


async def pids(data_dir: Path) -> dict[str, int]:
    """Of the services; who has another one later was started anew."""
    found = await asyncio.to_thread(supervise.status, data_dir)
    return {each.name: each.pid for each in found if each.name not in ("broker", "postgres")}


async def signal_to(data_dir: Path, name: str, number: signal.Signals) -> int:
    """The pid that got it."""
    pid = await pid_of(data_dir, name)
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    return pid


@contextmanager
def rival(data_dir: Path, name: str, lanes: int) -> Iterator[Running]:
    """A second copy of a decider that knows nothing of the first: all lanes, no group."""
    command, told = program(data_dir, name)
    folder = data_dir / f"rival-{name}"
    env = (
        dict(os.environ)
        | told
        | {
            "BERTH_LANES": ",".join(str(lane) for lane in range(lanes)),
            "BERTH_INSTANCE": f"rival-{name}",
            "BERTH_DATA": str(folder),
            "BERTH_METRICS_PORT": "0",
        }
    )
    folder.mkdir()
    running = spawn(f"rival-{name}", command, folder / "rival.log", env)
    try:
        yield running
    finally:
        running.kill()


@contextmanager
def paused(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


NOISE: tuple[Callable[[random.Random], bytes], ...] = (
    lambda chance: chance.randbytes(chance.randint(0, 64)),
    lambda _: b"[" * 500,
    lambda _: b'{"specversion":"1.0","id":"x","source":"/x","type":"job.destroy.v1","data":{}}',
    lambda _: b'{"specversion":"1.0","id":"x","source":"/x","type":"job.submit.v1","data":{"a":1}}',
    lambda chance: b'{"specversion":"0.3","id":"%d"}' % chance.randrange(10**9),
    lambda _: (
        b'{"specversion":"1.0","id":"\\u0000","source":"/x","type":"job.submit.v1","data":1e999}'
    ),
)
"""Kinds of records that nobody can read."""


def malformed(chance: random.Random) -> bytes:
    return chance.choice(NOISE)(chance)


def cut(folder: Path, share: float) -> int:
    """Bytes taken from the end of a partition's newest segment; the broker must not run."""
    segment = max(folder.glob("*.log"))
    size = segment.stat().st_size
    left = int(size * (1 - share))
    os.truncate(segment, left)
    return size - left


@contextmanager
def fill(folder: Path) -> Iterator[int]:
    """Every free byte of the file system below `folder` is taken until the block ends."""
    path = folder / "filler"
    taken = 0
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            taken += file.write(b"\0" * 65536)
    try:
        yield taken
    finally:
        path.unlink()


async def until(what: Callable[[], bool], within_s: float) -> float | None:
    """Seconds until it was true; None when it never was."""
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        if await asyncio.to_thread(what):
            return time.monotonic() - began
        await asyncio.sleep(POLL_S)
    return None
