"""A real worker stands still while a fault says so, and goes on without anybody's help."""

from __future__ import annotations

import json

import pytest

from berth_agent.linux import files, processes
from berth_agent.linux.clocks import boot_ms
from tests.agent.step_bench import INCARNATION, StepBench, until

pytestmark = pytest.mark.process

NAMESPACES = pytest.mark.parametrize("pid_namespace", [True, False])
COUNTS = "trap 'exit 7' TERM; touch begun; while :; do sleep 0.01; done"


def inject(bench: StepBench, fault: str, for_ms: int, incarnation: str = INCARNATION) -> None:
    """Write the note as the agent would, and let the step look."""
    now_ms = boot_ms()
    values = {
        "incarnation": incarnation,
        "fault": fault,
        "factor": 2.5,
        "from_boot_ms": now_ms,
        "until_boot_ms": now_ms + for_ms,
    }
    path = bench.lease_path.parent / "injection.json"
    files.write_atomic(str(path), json.dumps(values).encode())
    bench.wake()


def is_stopped(bench: StepBench) -> bool:
    """Return whether the shell of the worker stands still."""
    return any("T" in state for state in states(bench))


def states(bench: StepBench) -> list[str]:
    init = int(bench.state["init_pid"])
    letters = []
    for pid in set(processes.with_token(bench.token)) - {init}:
        fields = processes._stat(pid)
        if fields is not None:
            letters.append(fields[0])
    return letters


def printed(bench: StepBench) -> str:
    return "".join(path.read_text() for path in sorted(bench.folder.glob("output.log.*")))


def begin(bench: StepBench, pid_namespace: bool) -> None:
    bench.values["pid_namespace"] = pid_namespace
    bench.start(COUNTS)
    until(lambda: (bench.work / "begun").exists())


@NAMESPACES
def test_a_stopped_worker_goes_on_when_the_fault_is_over(
    bench: StepBench, pid_namespace: bool
) -> None:
    begin(bench, pid_namespace)
    inject(bench, "stop", 2_000)
    until(lambda: is_stopped(bench))
    until(lambda: bool(states(bench)) and not is_stopped(bench))
    assert "an operator injects a fault for a drill: stop for 2 s" in printed(bench)
    until(lambda: "the injected fault is over" in printed(bench))
    bench.stop(30)
    assert bench.end()["exit_code"] == 7


@NAMESPACES
def test_a_slow_worker_is_stopped_and_continued(bench: StepBench, pid_namespace: bool) -> None:
    begin(bench, pid_namespace)
    inject(bench, "slow", 3_600_000)
    for _ in range(2):
        until(lambda: is_stopped(bench))
        until(lambda: bool(states(bench)) and not is_stopped(bench))
    inject(bench, "none", 0)
    until(lambda: "the injected fault is over" in printed(bench))
    bench.stop(30)
    assert bench.end()["exit_code"] == 7


@NAMESPACES
def test_a_stopped_worker_that_has_to_end_gets_its_grace(
    bench: StepBench, pid_namespace: bool
) -> None:
    begin(bench, pid_namespace)
    inject(bench, "stop", 3_600_000)
    until(lambda: is_stopped(bench))
    bench.stop(30)
    end = bench.end()
    assert (end["exit_code"], end["stopped"]) == (7, True)


def test_the_fault_of_another_incarnation_does_not_concern_the_worker(bench: StepBench) -> None:
    begin(bench, True)
    inject(bench, "stop", 3_600_000, incarnation="b" * 32)
    bench.stop(30)
    assert bench.end()["exit_code"] == 7
    assert "injects" not in printed(bench)
