"""A service that begins as a copy of its supervisor is as one that a new interpreter runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from infra.supervisor import control, supervise
from infra.supervisor.stack import SERVICES, STEPS, Service
from infra.supervisor.supervise import StackOptions
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

HEAVY = "import os\nREAD_BY = os.getpid()\nASKED = os.environ.get('ASKED')\n"
MAIN = """
import atexit, json, os, signal, sys, threading, time
from probed import heavy

if __name__ == "__main__":
    how = os.environ.get("HOW", "")
    atexit.register(print, "at exit")
    main = threading.main_thread()
    threading.Thread(target=lambda: (main.join(), print("a thread"))).start()
    print(json.dumps({
        "argv0": os.path.basename(sys.argv[0]), "main": sys.modules["__main__"].__spec__.name,
        "copy": heavy.READ_BY != os.getpid(), "env": sorted(n for n in os.environ if n[0] == "X"),
        "term": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
        "int": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "title": open("/proc/self/cmdline", "rb").read().split(b"\\0")[0].decode(),
    }))
    if how == "raise":
        raise KeyError("a field")
    if how == "wait":
        sys.stdout.flush()
        time.sleep(600)
    sys.exit(json.loads(how) if how else 0)
"""
DRIVER = """
import os, shlex, signal, sys
from infra.machine.process import tied
from infra.supervisor.warm import Warm

argv = [*tied("TERM"), sys.executable, "-P", "-m", "probed"]
warm = Warm([shlex.join(argv), "java -jar broker.jar", f"{sys.executable} -P -m probed"])
signal.signal(signal.SIGTERM, lambda *_: None)
warm.read()
env = dict(os.environ) | {"XHIS": "1"}
env.pop("XMINE")
assert warm.can_run(argv, env)
assert not warm.can_run([*argv, "--more"], env)
assert not warm.can_run([*argv[:-1], "json"], env)
assert not warm.can_run([*argv[:-1], "probed.heavy"], env)
assert not warm.can_run(argv, env | {"PYTHONHASHSEED": "7"})
assert not warm.can_run(argv, env | {"ASKED": "when it was read"})
child = os.fork()
if child == 0:
    warm.begin(argv, env)
if os.environ.get("HOW") == "wait":
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
_, status = os.waitpid(child, 0)
sys.stdout.flush()
with open(os.environ["HEAVY"], "a") as file:
    file.write("# changed")
assert not warm.can_run(argv, env)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture
def probed(tmp_path: Path) -> Path:
    package = tmp_path / "probed"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "heavy.py").write_text(HEAVY)
    (package / "__main__.py").write_text(MAIN)
    return tmp_path


def drive(folder: Path, how: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {
        "PYTHONPATH": f"{folder}{os.pathsep}{os.getcwd()}",
        "HOW": how,
        "XMINE": "1",
        "HEAVY": str(folder / "probed" / "heavy.py"),
    }
    return subprocess.run(
        [sys.executable, "-P", "-c", DRIVER],
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("how", "code", "output"),
    [
        ("", 0, ""),
        ("71", 71, ""),
        ('"no such pool"', 1, "no such pool"),
        ("raise", 1, "KeyError: 'a field'"),
    ],
)
def test_a_copy_runs_and_ends_as_a_program_does(
    probed: Path, how: str, code: int, output: str
) -> None:
    done = drive(probed, how)
    assert done.returncode == code, done.stderr
    first, *others = done.stdout.splitlines()
    assert json.loads(first) == {
        "argv0": "__main__.py",
        "main": "probed.__main__",
        "copy": True,
        "env": ["XHIS"],
        "term": True,
        "int": True,
        "title": f"{sys.executable} -P -m probed",
    }
    assert others == ["a thread", "at exit"]
    assert output in done.stderr


def test_a_copy_ends_with_its_parent(probed: Path) -> None:
    done = drive(probed, "wait")
    assert done.returncode == -signal.SIGKILL
    copy = next(int(line) for line in done.stdout.splitlines() if line.isdigit())
    ends = time.monotonic() + PATIENCE_S
    while has_not_ended(copy) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not has_not_ended(copy)


def has_not_ended(pid: int) -> bool:
    """Return whether the process runs; a zombie, which its parent may never reap, has ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_reading_all_services_starts_no_thread_that_a_copy_would_lack() -> None:
    commands = [[sys.executable, "-P", *service.arguments] for service in SERVICES]
    variables = (
        "import os, shlex, sys\nfrom infra.supervisor import warm\nwarm.tied = lambda end: []\n"
        f"read = warm.Warm(map(shlex.join, {commands!r}))\nread.read()\n"
        "print(len(os.listdir('/proc/self/task')), 'services.gateway.app' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", variables], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "True"], done.stderr


SERVED = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass

if __name__ == "__main__":
    print("copy" if "supervisor.supervisord" in sys.modules else "new", flush=True)
    HTTPServer(("127.0.0.1", int(os.environ["BERTH_METRICS_PORT"])), Health).serve_forever()
"""


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "__init__.py").touch()
    (tmp_path / "served" / "__main__.py").write_text(SERVED)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.getcwd()}")
    folder = tmp_path / "data"
    yield folder
    supervise.down(folder)


def test_a_restart_after_an_upgrade_runs_the_new_code(data_dir: Path) -> None:
    steps = tuple(step for step in STEPS if step.name == "topics")
    services = (Service("first", "served", 64),)
    supervise.up(StackOptions(data_dir, services=services, steps=steps, foreground=True))

    def begun(times: int) -> list[str]:
        ends = time.monotonic() + PATIENCE_S
        log = data_dir / "logs" / "first.log"
        while len(started := log.read_text().split()) < times and time.monotonic() < ends:
            time.sleep(0.05)
        return started

    def kill() -> None:
        pids = {process.name: process.pid for process in control.processes(data_dir)}
        os.kill(pids["first"], signal.SIGKILL)

    kill()
    assert begun(2) == ["copy", "copy"]
    (data_dir.parent / "served" / "__init__.py").write_text("VERSION = 2\n")
    kill()
    assert begun(3) == ["copy", "copy", "new"]
