"""Memory of processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.parts.agents.real_agent import kib_of, memory_mib

FORKS = """
import os, sys
held = b"x" * (32 * 2**20)
reader, writer = os.pipe()
if os.fork() == 0:
    os.close(writer)
    os.read(reader, 1)
    os._exit(0)
print(*open(f"/proc/self/task/{os.getpid()}/children").read().split(), flush=True)
sys.stdin.read()
"""


@pytest.mark.process
def test_pages_that_a_fork_shares_count_once() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", FORKS], stdin=pipe, stdout=pipe) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        pids = (parent.pid, child)
        rss_mib = sum(kib_of(pid, "smaps_rollup")["Rss"] for pid in pids) / 1024
        assert rss_mib > 64 and 32 < memory_mib(pids) < rss_mib - 30
        parent.communicate()
