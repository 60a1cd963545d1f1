"""The wrapper of a worker beside a dashboard of the test's own: no Ray takes part."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from services.executor.core.engines.contract import RankEnd
from services.executor.engines.ray import worker
from services.executor.engines.ray.folder import RayFolder
from services.executor.engines.ray.worker import Lease
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process
REF = "berth~here~gpu~1-5-0"
BEGUN = "echo begun; "


class Dashboard(ThreadingHTTPServer):
    """Answers with one status of the job, 404 for none."""

    status = "RUNNING"
    unknown = "Job x does not exist"
    start_time = 1
    requests = 0
    authorization: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/jobs/x"


class Handler(BaseHTTPRequestHandler):
    server: Dashboard

    def do_GET(self) -> None:
        server = self.server
        server.requests += 1
        server.authorization = self.headers["Authorization"]
        job = json.dumps({"status": server.status, "start_time": server.start_time})
        self.send_response(200 if server.status else 404)
        self.end_headers()
        self.wfile.write((job if server.status else server.unknown).encode())

    def log_message(self, *arguments: Any) -> None:
        return


class Worker:
    """One worker of a gang, started as Ray would."""

    def __init__(self, folder: RayFolder, dashboard: Dashboard, script: str, **more: Any) -> None:
        self.folder = folder
        given = {
            "begins": f"job-{REF}",
            "command": ["sh", "-c", script],
            "environment": {"PATH": os.environ["PATH"], "RANK": "0"},
            "workdir": "",
            "walltime_s": None,
            "grace_s": 0.5,
            "stop_after_s": 600.0,
            "job": dashboard.url,
            **more,
        }
        folder.write({0: given})
        self.process = self.run()

    def run(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "2,3"}
        command = [sys.executable, str(self.folder.path / "worker.py"), "0"]
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def begin(self, word: bytes = b"begun") -> None:
        self.folder.start(7000)
        eventually(lambda: word in self.folder.output(0, 0))

    def end(self) -> RankEnd:
        self.process.wait(PATIENCE_S)
        return self.folder.progress().ends[0]


def eventually(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    with Dashboard(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> RayFolder:
    return RayFolder(tmp_path, REF)


def test_a_program_begins_when_it_may_and_its_end_is_noted(
    folder: RayFolder, dashboard: Dashboard
) -> None:
    running = Worker(folder, dashboard, "echo $RANK $MASTER_PORT $CUDA_VISIBLE_DEVICES; exit 4")
    eventually(lambda: folder.progress().ready == REF)
    assert not folder.progress().is_begun and running.process.poll() is None
    folder.start(7000)
    end = running.end()
    assert (end.exit_code, end.reason, end.output) == (4, "", ("0 7000 2,3",))
    assert running.process.returncode == 4
    assert running.run().wait(PATIENCE_S) == 0, "a second wrapper begins nothing"
    assert folder.output(0, 0) == b"0 7000 2,3\n"


@pytest.mark.parametrize(("noted_after_s", "held_s"), [(2.0, 2.0), (1e6, 10 * 1.05 + 5)])
def test_a_second_wrapper_holds_the_gpus_until_the_first_has_ended(
    folder: RayFolder, monkeypatch: pytest.MonkeyPatch, noted_after_s: float, held_s: float
) -> None:
    """Ray forgot the first, and was given a job of the same name again."""
    now_s = 0.0

    def sleep(s: float) -> None:
        nonlocal now_s
        now_s += s
        if now_s >= noted_after_s:
            (folder.path / "rank-0.end").touch()

    folder.path.mkdir()
    clock = SimpleNamespace(monotonic=lambda: now_s, sleep=sleep)
    monkeypatch.setattr(worker, "time", clock)
    assert worker.outwait(folder.path, 0, {"stop_after_s": 10.0}) == 0
    assert now_s == pytest.approx(held_s, abs=2 * worker.POLL_S)


def test_what_is_forbidden_never_begins(folder: RayFolder, dashboard: Dashboard) -> None:
    running = Worker(folder, dashboard, "echo ran")
    folder.forbid()
    folder.start(7000)
    assert running.process.wait(PATIENCE_S) == 0
    assert folder.output(0, 0) == b"" and folder.progress().is_forbidden


def test_signals_reach_the_whole_session(folder: RayFolder, dashboard: Dashboard) -> None:
    running = Worker(
        folder, dashboard, "trap 'echo asked; exit 0' TERM; echo begun; sleep 300 & wait"
    )
    running.begin()
    folder.signal("signal-term")
    end = running.end()
    assert (end.exit_code, end.output) == (0, ("begun", "asked"))


def test_a_program_that_ignores_sigterm_is_killed(folder: RayFolder, dashboard: Dashboard) -> None:
    running = Worker(folder, dashboard, "trap '' TERM; echo begun; while :; do sleep 0.1; done")
    running.begin()
    folder.signal("signal-term")
    folder.signal("signal-kill")
    assert running.end().exit_code == 137


def test_a_program_ends_at_its_walltime(folder: RayFolder, dashboard: Dashboard) -> None:
    running = Worker(folder, dashboard, BEGUN + "sleep 300", walltime_s=0.1)
    folder.start(7000)
    end = running.end()
    assert (end.exit_code, end.reason) == (143, "walltime")


@pytest.mark.parametrize("status", ["FAILED", ""])
def test_a_job_that_ray_gave_up_or_forgot_ends_its_program(
    folder: RayFolder, dashboard: Dashboard, status: str
) -> None:
    running = Worker(folder, dashboard, BEGUN + "sleep 300", stop_after_s=6.0)
    running.begin()
    dashboard.status = status
    end = running.end()
    assert (end.exit_code, end.reason) == (137, "step_lost")


def test_a_worker_that_ray_does_not_answer_ends_itself(
    folder: RayFolder, dashboard: Dashboard
) -> None:
    running = Worker(folder, dashboard, BEGUN + "sleep 300", stop_after_s=2.0)
    running.begin()
    dashboard.shutdown()
    dashboard.server_close()
    assert running.end().reason == "step_lost"


@pytest.mark.parametrize(
    ("words", "is_ended"), [("Job x does not exist", True), ("<h1>no such backend</h1>", False)]
)
def test_only_ray_itself_ends_a_lease_by_404(
    dashboard: Dashboard, words: str, is_ended: bool
) -> None:
    dashboard.status, dashboard.unknown = "", words
    lease = Lease(dashboard.url, 0.6)
    eventually(lambda: lease.is_ended or dashboard.requests >= 3)
    assert lease.is_ended == is_ended
    dashboard.unknown = "Job x does not exist"
    eventually(lambda: lease.is_ended)


def test_a_lease_that_ran_out_is_not_renewed(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = Lease(dashboard.url, 0.6)
    now_s = time.monotonic() + 10
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: now_s, sleep=time.sleep))
    assert lease.is_over
    requests = dashboard.requests
    eventually(lambda: dashboard.requests >= requests + 2)
    assert lease.is_over and not lease.is_ended
    dashboard.status = "STOPPED"
    eventually(lambda: lease.is_ended)


def test_another_job_of_the_same_name_renews_no_lease(dashboard: Dashboard) -> None:
    lease = Lease(dashboard.url, 0.6)
    eventually(lambda: dashboard.requests >= 2)
    assert not lease.is_ended
    dashboard.start_time = 2
    eventually(lambda: lease.is_ended)


def test_a_lease_is_renewed_with_the_token_that_ray_has_on_the_node(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    lease = Lease(dashboard.url, 0.6)
    eventually(lambda: dashboard.requests >= 1)
    assert dashboard.authorization is None
    (tmp_path / "token").write_text("good\n")
    eventually(lambda: dashboard.authorization == "Bearer good")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "other")
    eventually(lambda: dashboard.authorization == "Bearer other")
    dashboard.status = "STOPPED"
    eventually(lambda: lease.is_ended)


def test_nothing_outlives_a_wrapper_that_is_killed(folder: RayFolder, dashboard: Dashboard) -> None:
    running = Worker(folder, dashboard, "echo $$; sleep 300 & echo $!; wait")
    running.begin(b"\n")
    eventually(lambda: folder.output(0, 0).count(b"\n") == 2)
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    pids = [int(line) for line in folder.output(0, 0).split()]
    eventually(lambda: not any(is_alive(pid) for pid in pids))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("more", "code", "reason"),
    [
        ({"command": ["no-such-program"]}, 127, "command_missing"),
        ({"workdir": "/no/such/folder"}, 1, "workdir_missing"),
    ],
)
def test_a_program_that_cannot_begin_says_why(
    folder: RayFolder, dashboard: Dashboard, more: dict[str, Any], code: int, reason: str
) -> None:
    running = Worker(folder, dashboard, "true", **more)
    folder.start(7000)
    end = running.end()
    assert (end.exit_code, end.reason) == (code, reason)


def test_a_lease_that_ends_before_the_start_fails_its_worker(
    folder: RayFolder, dashboard: Dashboard
) -> None:
    """Ray counts it among the failed, and the rest of its gang does not begin without it."""
    running = Worker(folder, dashboard, "echo ran", stop_after_s=2.0)
    eventually(lambda: folder.progress().ready == REF)
    dashboard.status = "FAILED"
    assert running.process.wait(PATIENCE_S) == 1
    folder.start(7000)
    assert folder.output(0, 0) == b""
