"""The memory of a step and its init, which stay small for as long as their worker runs."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from tests.agent.step_bench import AGENT, StepBench, until

pytestmark = pytest.mark.process

MIB = 2**20
MOST_MIB = 12.0
"""The aim of `agent.step_rss_mib` in `benchmarks/parts/agents/figures.py`."""
IMPORTS = f"import sys; sys.path.insert(0, {str(AGENT)!r}); import berth_agent.step.main"


def rss_mib(bench: StepBench) -> float:
    """Return the memory of a step and of its init; what they share counts twice."""
    pids = bench.state["pid"], bench.state["init_pid"]
    return sum(float(psutil.Process(pid).memory_info().rss) for pid in pids) / MIB


def test_a_step_that_waits_takes_no_more_than_12_mib(bench: StepBench) -> None:
    # A step of an installed agent finds its bytecode; without it it would keep what compiling took.
    subprocess.run([sys.executable, "-I", "-S", "-c", IMPORTS], check=True)
    bench.start("sleep 600")
    until(lambda: bench.phase == "running")
    until(lambda: rss_mib(bench) < MOST_MIB)


def test_a_step_that_gave_memory_back_still_obeys(bench: StepBench) -> None:
    bench.start("echo began; sleep 600")
    bench.line("began")
    until(lambda: rss_mib(bench) < MOST_MIB + 4)
    bench.stop(0.0)
    assert bench.end()["stopped"]
    assert not bench.living()
