"""The lease at the start of a worker, and the clock that it is counted on."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth_agent.linux import files
from berth_agent.linux.clocks import boot_ms
from berth_agent.step.guard import AFTER_MS, LeaseGuard
from berth_agent.step.spec import Spec
from tests.agent.step_bench import SUSPENDED_S, StepBench, a_time_namespace, clocks_that_jump, until

pytestmark = pytest.mark.process
SHORT_S = 6.0
"""A lease whose end a test awaits, and within which a busy machine starts a worker."""

LAPSES_DURING_THE_START = """
import time
from berth_agent.step.main import Step
from berth_agent.step.run import Run
begin, watch = Step._begin_run, Run.watch
def slow_begin(*arguments):
    run = begin(*arguments)
    os.rename({lapsed!r}, {lease!r})
    return run
def slow_watch(run, wake):
    time.sleep(1)
    watch(run, wake)
Step._begin_run, Run.watch = slow_begin, slow_watch
"""
"""The step is slow twice: a program that is released has time to run before the step can end it."""

LAPSES_AFTER_THE_LOOK = """
import os
from berth_agent.step.run import Run
from berth_agent.step.watch import FolderWatch
release = Run.release_if
def release_after_the_lapse(*arguments):
    FolderWatch.variables = lambda watch: os.rename({lapsed!r}, {lease!r}) or {{}}
    release(*arguments)
Run.release_if = release_after_the_lapse
"""
"""The disk is so slow that a file that is read after the last look outlasts the lease."""
HUNG_DISK = """
import os, time
from berth_agent.step.output import OutputLog
opened = os.open
def hangs(path, flags, *more, **named):
    while os.path.exists({hung!r}) and flags & (os.O_WRONLY | os.O_RDWR):
        time.sleep(0.1)
    return opened(path, flags, *more, **named)
def hang(*_):
    while os.path.exists({hung!r}):
        time.sleep(0.1)
    return True
os.open, OutputLog.pump = hangs, hang
"""
"""Writes of the step wait while there is a file, as on a disk that does not answer."""


@pytest.fixture
def bench() -> Iterator[StepBench]:
    with tempfile.TemporaryDirectory(prefix="berth-step-") as name:
        bench = StepBench(Path(name))
        bench.values["argv"] = ["touch", "ran"]
        yield bench
        bench.close()


def is_fenced(bench: StepBench) -> bool:
    """Return whether the step ended as fenced, and its program did not run."""
    end = bench.end()
    return end["failure"]["reason"] == "fenced" and not (bench.work / "ran").exists()


def test_a_lease_that_lapses_while_the_start_waits_starts_nothing(bench: StepBench) -> None:
    """[R4] The start waits for the folder's lock, and the deadline passes meanwhile."""
    bench.prepare()
    lock = files.lock(str(bench.folder / "lock"), wait=True)
    assert lock is not None
    bench.go()
    bench.renew(-1)
    os.close(lock)
    assert is_fenced(bench)
    assert bench.state["started"] is False


def test_a_lease_that_lapses_during_the_start_releases_no_program(bench: StepBench) -> None:
    """[R4] What is noted between the first look and the program's start may take long."""
    lapsed = bench.lease_path.with_name("lapsed")
    document = json.loads(bench.lease_path.read_text()) | {"deadline_boot_ms": boot_ms() - 1}
    lapsed.write_text(json.dumps(document))
    paths = {"lapsed": str(lapsed), "lease": str(bench.lease_path)}
    bench.prelude = "import os\n" + LAPSES_DURING_THE_START.format(**paths)
    bench.prepare()
    bench.go()
    assert is_fenced(bench)
    assert not lapsed.exists(), "the start was not begun"


def test_nothing_that_may_take_long_comes_after_the_last_look_at_the_lease(
    bench: StepBench,
) -> None:
    """[R4] The variables of the start are read before it."""
    lapsed = bench.lease_path.with_name("lapsed")
    document = json.loads(bench.lease_path.read_text()) | {"deadline_boot_ms": boot_ms() - 1}
    lapsed.write_text(json.dumps(document))
    paths = {"lapsed": str(lapsed), "lease": str(bench.lease_path)}
    bench.prelude = LAPSES_AFTER_THE_LOOK.format(**paths)
    bench.values["argv"] = ["sh", "-c", "echo $VARIABLE"]
    bench.prepare()
    bench.go(VARIABLE="set")
    assert bench.end()["exit_code"] == 0 and bench.output() == "set\n"
    assert lapsed.exists(), "the lease lapsed after it was looked at"


@pytest.mark.parametrize(("clock", "is_over"), [("boottime", True), ("monotonic", False)])
def test_time_in_which_the_machine_was_suspended_counts(
    bench: StepBench, clock: str, is_over: bool
) -> None:
    """[R17] A time namespace has the boot clock of a machine that was suspended for a day.

    Its monotonic clock, which stops in suspend, has no say.
    """
    bench.within = a_time_namespace(clock)
    bench.renew(SUSPENDED_S / 2)
    bench.prepare()
    bench.go()
    if is_over:
        assert is_fenced(bench)
    else:
        assert bench.end()["exit_code"] == 0


def test_a_worker_ends_when_its_machine_wakes_after_the_deadline(bench: StepBench) -> None:
    """[R17] The step runs already: its clocks jump while it waits."""
    woken = bench.work / "woken"
    bench.prelude = clocks_that_jump(woken)
    bench.renew(SUSPENDED_S / 2)
    bench.start("echo up; exec sleep 600")
    bench.line("up")
    woken.touch()
    assert bench.end()["failure"]["reason"] == "fenced" and bench.living() == []


@pytest.mark.parametrize("is_printing", [False, True])
def test_on_a_hung_disk_a_worker_is_asked_to_end_and_dies(
    bench: StepBench, is_printing: bool
) -> None:
    """[R18] The step waits in a write, of its output or of a note, beyond the deadline."""
    hung, asked = bench.work / "hung", bench.work / "asked"
    bench.prelude = HUNG_DISK.format(hung=str(hung))
    output = "while :; do echo more; sleep 0.1; done" if is_printing else "sleep 600"
    bench.values["grace_s"] = 1.0
    bench.renew(SHORT_S)
    bench.start(f"exec 2>/dev/null; trap 'touch {asked}' TERM; touch ran; {output}; {output}")
    until((bench.work / "ran").exists)
    hung.touch()
    until(lambda: bench.living() == [])
    assert is_printing or asked.exists(), "no SIGTERM came before the deadline"
    assert bench.phase == "running", "the step did not hang"
    hung.unlink()
    end = bench.end()
    assert (end["failure"]["reason"], end["exit_code"]) == ("fenced", 128 + signal.SIGKILL)


@pytest.mark.parametrize("is_hidden", [False, True])
def test_the_init_ends_the_worker_of_a_step_that_hangs(bench: StepBench, is_hidden: bool) -> None:
    """[R18] It reads the lease also where the worker has another folder in place of its own."""
    if is_hidden:
        own = bench.work / "own"
        own.mkdir()
        bench.values["mounts"] = [[str(own), str(bench.lease_path.parent.parent)]]
        bench.values |= {"kept": [str(bench.work)], "owner": os.geteuid()}
    bench.values["grace_s"] = 0.0
    bench.renew(SHORT_S)
    bench.start("touch ran; setsid sleep 600 & exec sleep 600")
    until(lambda: len(bench.living()) == 2)
    os.kill(bench.state["pid"], signal.SIGSTOP)
    until(lambda: bench.living() == [])
    os.kill(bench.state["pid"], signal.SIGCONT)
    assert bench.end()["failure"]["reason"] == "fenced"


def test_the_guard_of_a_lease_takes_later_deadlines_and_no_others(bench: StepBench) -> None:
    guard = LeaseGuard(Spec(bench.values))
    bench.lease_path.rename(bench.work / "later")
    assert not guard.is_over(boot_ms()), "what it never read"
    bench.renew(0)
    first_ms = boot_ms()
    assert not guard.is_over(first_ms) and guard.is_over(first_ms + AFTER_MS)
    bench.renew(3600)
    renewed_ms = boot_ms()
    assert not guard.is_over(first_ms + AFTER_MS)
    bench.lease_path.unlink()
    assert guard.is_over(renewed_ms + 3600_000 + AFTER_MS)
    bench.renew(7200, "b" * 32)
    assert guard.is_over(renewed_ms + 3600_000 + AFTER_MS), "that of another incarnation"
    bench.renew(None)
    assert not guard.is_over(first_ms + 7200_000)
    bench.renew(None, "b" * 32)
    assert guard.is_over(first_ms)
