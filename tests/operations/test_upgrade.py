"""The release before this one is upgraded to this one under traffic, and rolled back again."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.compose.opening import send_request
from infra.machine.owned_folders import scratch_folder
from infra.supervisor.running import RunningStack, load
from shared.contracts.pools import RELEASE
from tests.e2e.stand import eventually

ROOT = Path(__file__).parents[2]
PREVIOUS = "bc96cadc4f0af3f5446887d3e0b8357f18d57024"
"""The last commit of the release before this one."""
PREVIOUS_CODE = ("services", "shared", "simulator", "infra", "training")
CODE = ("benchmarks", "cli", *PREVIOUS_CODE)
EVERY_S = 0.25
MORE = 8
"""Jobs that each of the releases has to take."""
TENANT = "ada"

pytestmark = [pytest.mark.stack, pytest.mark.parts]


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)


def _previous() -> bytes:
    """Return its code as a tar; nothing in a clone that does not reach so far back."""
    return _git("archive", PREVIOUS, *PREVIOUS_CODE).stdout


class Site:
    """One machine: a folder of code that is replaced in place, and a stack that runs from it.

    Beside it lies each release, compiled at its first start.
    """

    def __init__(self, root: Path, archive: bytes) -> None:
        self.code, self.data = root / "code", root / "data"
        self._previous, self._this = root / "previous", root / "this"
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(self._previous, filter="data")
        for name in CODE:
            shutil.copytree(ROOT / name, self._this / name)

    def install_previous(self) -> None:
        self._install(self._previous)

    def install_this(self) -> None:
        self._install(self._this)

    def _install(self, release: Path) -> None:
        """Put the release in the place of the other one, which keeps what it has compiled."""
        for other in (self._previous, self._this):
            if not other.exists():
                self.code.rename(other)
        release.rename(self.code)

    def run(self, *words: str, timeout_s: float = 600, **env: str) -> str:
        """Run a program of the installed code; return its output."""
        path = {"PYTHONPATH": str(self.code)}
        done = subprocess.run(
            [sys.executable, "-P", *words],
            env=os.environ | path | env,
            cwd=self.code.parent,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def berth(self, *words: str) -> str:
        main = "cli" if (self.code / "cli").is_dir() else "services.cli"
        return self.run("-m", main, *words, "--data", str(self.data))

    def migrate(self) -> None:
        dsn = json.loads((self.data / "stack.json").read_text())["postgres"]
        self.run("-m", "shared.projections.migrate", BERTH_POSTGRES=dsn)

    def upgrade_state(self) -> tuple[bool, int]:
        """Return whether the upgrade is finished, and the earliest release of the pools."""
        state = json.loads(self.berth("upgrade", "status", "--json"))
        return state["finished"], min(row["release"] for row in state["pools"])

    def roll(self) -> None:
        self.berth("restart")


class Traffic:
    """Submits jobs by REST until it is stopped; `taken` holds the acknowledged ones."""

    def __init__(self, stack: RunningStack, key: str, name: str = "job") -> None:
        self._stack, self._key, self._name = stack, key, name
        self._stop = threading.Event()
        self.taken: list[str] = []
        self._thread = threading.Thread(target=self._submit)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def go_on(self) -> None:
        """Wait until more jobs are taken."""
        before = len(self.taken)
        eventually(lambda: len(self.taken) >= before + MORE)

    def _submit(self) -> None:
        number = 0
        while not self._stop.wait(EVERY_S):
            number += 1
            body = {
                "tenant": TENANT,
                "pool": "virtual",
                "idempotency_key": f"{self._name}-{number}",
                "spec": {
                    "name": "n",
                    "gang": {"gpus_per_worker": 1},
                    "simulated": {"duration_s": 0.2},
                },
            }
            status, answer = send_request(self._stack, self._key, "POST", "/v1/jobs", body)
            # 0 and 503: the gateway restarts, or starts; nothing was acknowledged.
            assert status in (202, 0, 503), (status, answer)
            if status == 202:
                self.taken.append(answer["job_id"])


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    archive = _previous()
    if not archive:
        pytest.skip(f"this clone does not hold {PREVIOUS}, the release before this one")
    with scratch_folder("upgrade") as folder:
        made = Site(folder, archive)
        made.install_previous()
        made.berth("up", "--detach")
        try:
            made.berth("tenants", "add", TENANT, "--pool", "virtual")
            yield made
        finally:
            made.berth("down")


def test_upgrade_and_rollback_under_traffic(site: Site) -> None:
    stack = load(site.data)
    key = (site.data / "operator.key").read_text().strip()
    with Traffic(stack, key) as traffic:
        traffic.go_on()
        site.install_this()
        site.migrate()
        site.roll()
        traffic.go_on()
        # A change of a pool and a new one leave the way back open.
        site.berth("pools", "set", "virtual", "round_ms=110")
        site.berth("pools", "add", "later", "backends=virtual")
        assert site.upgrade_state() == (False, 0)
        traffic.go_on()
        site.install_previous()
        site.roll()
        traffic.go_on()

    def all_succeeded() -> bool:
        rows = (send_request(stack, key, "GET", f"/v1/jobs/{job}") for job in traffic.taken)
        return all(status == 200 and row["phase"] == "succeeded" for status, row in rows)

    eventually(all_succeeded)
    site.install_this()
    # Rows of the previous projector lack the fields of this version's events.
    site.roll()
    site.berth("projections", "rebuild")
    with Traffic(stack, key, "later") as traffic:
        site.berth("upgrade", "finish")
        traffic.go_on()
    eventually(lambda: site.upgrade_state() == (True, RELEASE))
    assert "0 violations" in site.berth("verify")
