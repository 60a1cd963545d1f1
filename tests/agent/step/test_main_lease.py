"""The lease at the start of a worker, and the clock that it is counted on."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth_agent.linux import files
from berth_agent.linux.clocks import boot_ms
from tests.agent.step_bench import SUSPENDED_S, StepBench, a_time_namespace, clocks_that_jump

pytestmark = pytest.mark.process

LAPSES_DURING_THE_START = """
import time
from berth_agent.step.main import Step
from berth_agent.step.run import Run
begin, watch = Step._begin_run, Run.watch
def slow_begin(step, worker):
    run = begin(step, worker)
    os.rename({lapsed!r}, {lease!r})
    return run
def slow_watch(run, wake):
    time.sleep(1)
    watch(run, wake)
Step._begin_run, Run.watch = slow_begin, slow_watch
"""
"""The step is slow twice: a program that is released has time to run before the step can end it."""


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
