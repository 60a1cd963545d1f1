from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import psutil
import pytest

from infra.broker import kafka, topics
from infra.machine.owned_folders import remove_stale
from infra.machine.process import is_open
from infra.security.certificates import CertificateOptions, ends, make
from infra.supervisor import control, supervise, usage
from infra.supervisor.stack import STEPS, Service
from infra.supervisor.supervise import DidNotStart, NoStack, OtherStack, StackOptions
from shared.contracts.topics import TOPICS, TopicSpec
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

DUMMY = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

if code := os.environ.get("BERTH_ENDS"):
    raise SystemExit(int(code))
if os.environ.get("BERTH_FAILS"):
    raise SystemExit("no such pool")
print(sorted(name for name in os.environ if name.startswith(("BERTH_", "SECRET"))), flush=True)
HTTPServer(("127.0.0.1", int(os.environ["BERTH_METRICS_PORT"])), Health).serve_forever()
"""
TOPICS_ONLY = tuple(step for step in STEPS if step.name == "topics")
SERVICES = (Service("first", "dummy", 64), Service("second", "dummy", 64))


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = _beside_dummy(tmp_path, monkeypatch)
    yield folder
    supervise.down(folder)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a stack for the tests that leave it as it was."""
    with pytest.MonkeyPatch.context() as patch:
        folder = _beside_dummy(tmp_path_factory.mktemp("running"), patch)
        patch.setenv("SECRET_OF_THE_USER", "s3cret")
        patch.setenv("BERTH_STRAY", "1")
        supervise.up(_options(folder, env={"first": {"BERTH_EXTRA": "a b%c"}}))
    yield folder
    supervise.down(folder)


def _beside_dummy(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a stack whose services the module `dummy` is."""
    (folder / "dummy.py").write_text(DUMMY)
    patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.getcwd()}")
    return folder / "data"


def _options(data_dir: Path, **changed: object) -> StackOptions:
    given: dict[str, object] = {"services": SERVICES, "steps": TOPICS_ONLY, "foreground": True}
    return StackOptions(data_dir, **{**given, **changed})  # type: ignore[arg-type]


def _eventually(what: Callable[[], bool]) -> float:
    """Seconds until it became true."""
    start = time.monotonic()
    while not what():
        assert time.monotonic() - start < PATIENCE_S, "did not happen in time"
        time.sleep(0.02)
    return time.monotonic() - start


async def test_a_stack_is_ready_when_up_returns_and_gone_when_down_does(data_dir: Path) -> None:
    stack = supervise.up(_options(data_dir))
    assert supervise.load(data_dir) == stack
    used = {process.name: process for process in supervise.status(data_dir)}
    assert usage.memory(data_dir.resolve()) and usage.cpu_s(data_dir.resolve())
    assert list(used) == ["broker", "postgres", "first", "second"]
    assert all(process.ready for process in used.values())
    admin = topics.connect(stack.connection("admin"))
    assert set(admin.list_topics()) >= set(TOPICS)
    admin.close()
    connection = await asyncpg.connect(stack.postgres)
    assert await connection.fetchval("SELECT current_database()") == "berth"
    await connection.close()

    assert supervise.down(data_dir)
    assert not supervise.is_running(data_dir)
    assert not is_open(stack.ports["first"]["metrics"])
    assert all(not psutil.pid_exists(process.pid) for process in used.values())
    assert supervise.status(data_dir) == []
    assert usage.memory(data_dir.resolve()) == {}
    assert usage.cpu_s(data_dir.resolve()) == {}
    assert not supervise.down(data_dir)
    assert not control.socket_path(data_dir.resolve()).exists()
    assert stack.work.is_relative_to(data_dir) or not stack.work.exists()


def test_folders_outside_of_a_stack_that_was_killed_are_removed_by_a_later_start(
    data_dir: Path,
) -> None:
    deep = data_dir / ("x" * 100)
    supervise.up(_options(deep))
    outside = control.socket_path(deep.resolve()).parent
    assert not outside.is_relative_to(deep) and outside.exists()
    assert outside not in remove_stale()
    os.kill(control.supervisor_pid(deep.resolve()), signal.SIGKILL)
    # Its processes end with it, each in its time.
    _eventually(lambda: remove_stale() is not None and not outside.exists())
    assert not supervise.down(deep)


def test_a_killed_service_runs_again(running: Path) -> None:
    # The supervisor calls a process started, not restarted, in its first second.
    _eventually(lambda: _states(running)["first"] == "running")
    before, other = supervise.pid_of(running, "first"), supervise.pid_of(running, "second")
    os.kill(before, signal.SIGKILL)
    _eventually(lambda: supervise.pid_of(running, "first") not in (0, before))
    supervise.wait_ready(running, ("first",), timeout_s=PATIENCE_S)
    assert supervise.pid_of(running, "second") == other


def test_a_stack_with_tls_renews_its_certificates_while_it_runs(data_dir: Path) -> None:
    stack = supervise.up(_options(data_dir, tls=True))
    assert stack.ca is not None
    folder = stack.ca.parent
    before = ends(folder)["api"]
    made_at = datetime.fromtimestamp(time.time(), UTC) - timedelta(days=21)
    make(folder, CertificateOptions(renew=True), now=made_at)
    assert ends(folder)["api"] < before
    # The program looks at its start and once a day: another start stands for the next day.
    os.kill(supervise.pid_of(data_dir, "certificates"), signal.SIGKILL)
    _eventually(lambda: ends(folder)["api"] >= before)


def test_use_is_reported_by_process_with_its_children(running: Path) -> None:
    memory, spent_s = usage.memory(running.resolve()), usage.cpu_s(running.resolve())
    services = {"broker", "postgres", "first", "second"}
    assert spent_s.keys() == services
    assert memory.keys() == services | {usage.SUPERVISOR}
    # A process of Python's alone has more than 4 MiB, and pages that others map are shared out.
    assert all(0 < process.pss_mib <= process.rss_mib for process in memory.values())
    assert all(process.rss_mib > 4 for process in memory.values())
    postgres = psutil.Process(supervise.pid_of(running, "postgres"))
    alone_mib = postgres.memory_info().rss / usage.MIB
    assert memory["postgres"].rss_mib > 1.5 * alone_mib
    assert usage.cpu_s(running.resolve())["postgres"] >= spent_s["postgres"] > 0


def _states(data_dir: Path) -> dict[str, str]:
    return {process.name: process.state for process in control.processes(data_dir.resolve())}


def test_a_service_is_restarted_on_request(running: Path) -> None:
    before = supervise.pid_of(running, "second")
    supervise.restart(running, "second")
    supervise.wait_ready(running, ("second",), timeout_s=PATIENCE_S)
    assert supervise.pid_of(running, "second") not in (0, before)
    with pytest.raises(NoStack, match="no service third"):
        supervise.restart(running, "third")


def test_the_stack_stops_with_one_line_when_the_embedded_broker_dies(data_dir: Path) -> None:
    supervise.up(_options(data_dir))
    pids = [process.pid for process in supervise.status(data_dir)]
    os.kill(supervise.pid_of(data_dir, "broker"), signal.SIGKILL)
    _eventually(lambda: not supervise.is_running(data_dir))
    _eventually(lambda: all(not psutil.pid_exists(pid) for pid in pids))
    assert "the embedded broker ended" in supervise.why_stopped(data_dir)


def test_a_stack_that_is_watched_ends_with_its_watcher(data_dir: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path;"
        "from tests_options import up; up(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    (data_dir.parent / "tests_options.py").write_text(
        "from infra.supervisor.supervise import *\nfrom infra.supervisor.stack import *\n"
        "from infra.supervisor import supervise\n"
        "def up(data):\n"
        "    supervise.up(StackOptions(data, services=(Service('first', 'dummy', 64),),"
        " steps=STEPS[:1], foreground=True))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(data_dir)], check=False)
    assert done.returncode == -signal.SIGKILL
    _eventually(lambda: not supervise.is_running(data_dir))


def test_nothing_goes_on_without_its_supervisor(data_dir: Path) -> None:
    supervise.up(_options(data_dir))
    pids = [process.pid for process in supervise.status(data_dir)]
    os.kill(int((data_dir / "supervisord.pid").read_text()), signal.SIGKILL)
    _eventually(lambda: all(not psutil.pid_exists(pid) for pid in pids))
    assert not supervise.is_running(data_dir)


def test_a_service_sees_only_its_own_variables(running: Path) -> None:
    first, second = (running / "logs" / f"{name}.log" for name in ("first", "second"))
    # The supervisor writes what a service prints, which may be after the service is ready.
    _eventually(lambda: all("BERTH_KAFKA" in log.read_text() for log in (first, second)))
    messages = first.read_text()
    assert "SECRET" not in messages and "BERTH_STRAY" not in messages
    assert "BERTH_EXTRA" in messages and "BERTH_KAFKA" in messages
    assert "BERTH_EXTRA" not in second.read_text()


def test_a_service_that_cannot_start_is_named_with_its_reason(data_dir: Path) -> None:
    """On a busy machine it may take longer than the limit until the service gives its reason."""
    for limit_s in (4, 20, PATIENCE_S):
        options = _options(data_dir, env={"second": {"BERTH_FAILS": "1"}}, ready_timeout_s=limit_s)
        with pytest.raises(DidNotStart, match="is not ready after") as failed:
            supervise.up(options)
        assert not supervise.is_running(data_dir)
        if "no such pool" in str(failed.value):
            break
    assert f"second is not ready after {limit_s:g} s: " in str(failed.value)
    assert "no such pool" in str(failed.value)


def test_a_service_that_refuses_its_ledger_at_once_is_not_started_again(data_dir: Path) -> None:
    options = _options(data_dir, env={"second": {"BERTH_ENDS": "71"}}, ready_timeout_s=PATIENCE_S)
    with pytest.raises(DidNotStart, match="second has ended"):
        supervise.up(options)


def test_a_durable_stack_with_another_broker_keeps_its_folder(data_dir: Path) -> None:
    (data_dir / "kafka").mkdir(parents=True)
    key = data_dir / "operator.key"
    key.write_text("of the stack with Kafka")
    with pytest.raises(OtherStack, match="holds the data of a stack with the broker kafka"):
        supervise.up(_options(data_dir))
    assert key.exists() and not supervise.is_running(data_dir)


def test_a_second_stack_in_the_same_folder_is_refused(running: Path) -> None:
    with pytest.raises(NoStack, match="a stack is already running in"):
        supervise.up(_options(running))
    assert supervise.is_running(running)


def test_addresses_are_saved_for_their_owner_only(running: Path) -> None:
    path = running / "stack.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["kafka"] == supervise.load(running).kafka
    assert stat.S_IMODE((running / "supervisord.conf").stat().st_mode) == 0o600
    assert stat.S_IMODE(control.socket_path(running.resolve()).stat().st_mode) == 0o700


def test_records_that_the_embedded_broker_has_lost_are_not_read_again(data_dir: Path) -> None:
    stack = supervise.up(_options(data_dir))
    (stack.state / "first" / "snapshot").write_text("of a ledger that is gone")
    (data_dir / "operator.key").write_text("of a ledger that is gone")
    supervise.down(data_dir)
    again = supervise.up(_options(data_dir))
    assert not (again.state / "first" / "snapshot").exists()
    assert not (data_dir / "operator.key").exists()


@pytest.mark.kafka
@pytest.mark.parts
def test_kafka_keeps_its_data_over_a_restart(data_dir: Path) -> None:
    if kafka.missing():
        pytest.skip(kafka.missing())
    stack = supervise.up(_options(data_dir, broker="kafka"))
    (stack.state / "first" / "snapshot").write_text("kept")
    topics.create(stack.connection("admin"), 4, True, [TopicSpec("mine", "ledger", -1, True)])
    supervise.down(data_dir)
    again = supervise.up(_options(data_dir, broker="kafka"))
    admin = topics.connect(again.connection("admin"))
    assert "mine" in admin.list_topics()
    admin.close()
    assert (again.state / "first" / "snapshot").read_text() == "kept"
    supervise.down(data_dir)
    shutil.rmtree(again.work, ignore_errors=True)


def test_nothing_runs_where_nothing_was_started(tmp_path: Path) -> None:
    assert not supervise.is_running(tmp_path)
    assert supervise.status(tmp_path) == []
    assert not supervise.down(tmp_path)
    with pytest.raises(NoStack, match="no stack was ever started"):
        supervise.load(tmp_path)
