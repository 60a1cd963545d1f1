"""A small disk under the broker or under Postgres that fills up, and is freed again."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Literal

from benchmarks.parts import faults
from benchmarks.parts.scene import Scene
from benchmarks.parts.stack import AWAITED, TENANT, Bench, as_record, prepare, started
from infra.supervisor import supervise
from infra.supervisor.running import Broker
from shared.contracts.access import CreateKey
from shared.contracts.keys import format_key, hash_secret
from shared.ledger.partition import TP

Say = Callable[[str], None]
Json = dict[str, object]
Under = Literal["kafka", "postgres"]

SIZE_MIB = {"kafka": 256, "postgres": 512}
FULL_S = 20.0
ASK_EVERY_S = 0.25


def missing() -> str:
    """Why this machine cannot make a file system of its own, or nothing."""
    return "" if os.geteuid() == 0 else "only root may mount a small file system"


@contextmanager
def small(folder: Path, size_mib: int) -> Iterator[None]:
    folder.mkdir(parents=True)
    option = f"size={size_mib}m,mode=0755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@asynccontextmanager
async def small_stack(broker: Broker, under: Under, say: Say) -> AsyncIterator[tuple[Bench, Path]]:
    """As `bench_stack`, with one part on a small disk."""
    with tempfile.TemporaryDirectory(prefix="berth-disk-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        disk = folder / broker / under
        with small(disk, SIZE_MIB[under]):
            options = supervise.StackOptions(data_dir=folder, broker=broker, awaited=AWAITED)
            async with started(options, say) as bench:
                await prepare(bench, say)
                yield bench, disk


class Asker:
    """A client of the API that goes on asking: when it was answered what."""

    def __init__(self, made: Scene) -> None:
        self._made = made
        self._key = ""
        self.said: list[tuple[float, str, int]] = []
        self.acked: list[str] = []

    async def enter(self) -> None:
        """Registers a key, and waits until it opens the API."""
        key_id, secret = "chaos", secrets.token_urlsafe(24)
        self._key = format_key(key_id, secret)
        command = CreateKey(
            key_id=key_id, sha256=hash_secret(secret), role="submitter", tenant=TENANT
        )
        await self._made.put(TP("access.commands", 0), as_record(command))
        await faults.until(lambda: self._call("GET", "/v1/jobs?limit=1")[0] == 200, 30.0)

    async def run(self) -> None:
        """A submit and a read, again and again."""
        while True:
            for kind, method, path in (("submit", "POST", "/v1/jobs"), ("read", "GET", "/v1/jobs")):
                status, told = await asyncio.to_thread(self._call, method, path)
                self.said.append((time.time(), kind, status))
                if status == 202:
                    self.acked.append(str(told["command_id"]))
                    self._made.asked(str(told["job_id"]))
            await asyncio.sleep(ASK_EVERY_S)

    def _call(self, method: str, path: str) -> tuple[int, Json]:
        body = json.dumps({"spec": {"name": "asked", "simulated": {"duration_s": 0.1}}}).encode()
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        address = self._made.bench.stack.gateway + path
        sent = body if method == "POST" else None
        asked = urllib.request.Request(address, sent, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {}
        except OSError:
            return 0, {}

    def first(self, kind: str, status: int, since: float) -> float | None:
        """Seconds from `since` to the first such answer."""
        times = [
            at for at, what, told in self.said if (what, told) == (kind, status) and at > since
        ]
        return round(min(times) - since, 2) if times else None

    def between(self, kind: str, begin: float, end: float) -> dict[str, int]:
        """How often each status was told meanwhile; 0: no answer."""
        told = [str(s) for at, what, s in self.said if what == kind and begin < at <= end]
        return {status: told.count(status) for status in sorted(set(told))}


async def filled(made: Scene, disk: Path, under: Under) -> Json:
    """The disk is full for a while; what the API said, and when all went on."""
    asker = Asker(made)
    await asker.enter()
    asking = asyncio.ensure_future(asker.run())
    try:
        await asyncio.sleep(5.0)
        full = time.time()
        with faults.fill(disk) as taken:
            await asyncio.sleep(FULL_S)
        freed = time.time()
        kind = "submit" if under == "kafka" else "read"
        good = 202 if under == "kafka" else 200
        await faults.until(lambda: asker.first(kind, good, freed) is not None, 120.0)
        await made.decides_after("placement", freed)
        decided_s = time.time() - freed
        await asyncio.sleep(3.0)
    finally:
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
    made.acked |= dict.fromkeys(asker.acked, time.time())
    return {
        "filled_mib": round(taken / 2**20),
        "full_s": FULL_S,
        "first_503_after_s": asker.first(kind, 503, full),
        "answers_to_submits_while_full": asker.between("submit", full, freed),
        "answers_to_reads_while_full": asker.between("read", full, freed),
        "good_again_after_s": asker.first(kind, good, freed),
        "next_decision_after_s": round(decided_s, 2),
        "acknowledged_by_the_api": len(asker.acked),
    }
