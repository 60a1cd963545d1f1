"""A benchmark cleans up after itself, by whatever signal it is ended."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from infra.supervisor import supervise

pytestmark = pytest.mark.process

PROGRAM = """
import asyncio, signal, sys
# Shells start background jobs with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
from dataclasses import dataclass
from pathlib import Path
from benchmarks.parts.command import serve

@dataclass
class Options:
    folder: str = ""

async def run(options, report_line):
    try:
        (Path(options.folder) / "began").touch()
        await asyncio.sleep(60)
        return {}
    finally:
        await asyncio.sleep(0.1)
        (Path(options.folder) / "cleaned").touch()

serve(run, Options, "A benchmark.")
"""

STACK = """
from pathlib import Path
from infra.supervisor.supervise import StackOptions
from benchmarks.parts.command import serve
from benchmarks.parts.stack import started
import asyncio
from dataclasses import dataclass

@dataclass
class Options:
    folder: str = ""

async def run(options, report_line):
    async with started(StackOptions(Path(options.folder), services=(), steps=()), report_line):
        await asyncio.sleep(60)
    return {}

serve(run, Options, "A benchmark on a stack.")
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, None)])
def test_what_was_started_is_stopped_first(
    tmp_path: Path, number: signal.Signals, code: int | None
) -> None:
    words = [sys.executable, "-c", PROGRAM, "--folder", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        while not (tmp_path / "began").exists():
            assert running.poll() is None
            time.sleep(0.02)
        running.send_signal(number)
        output, _ = running.communicate(timeout=240)
    assert (tmp_path / "cleaned").exists()
    assert output == b""
    assert running.returncode == code if code else running.returncode != 0


def test_a_stack_that_is_being_started_is_stopped_as_well(tmp_path: Path) -> None:
    words = [sys.executable, "-c", STACK, "--folder", str(tmp_path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        assert b"starting the embedded broker" in running.stderr.readline()
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=240)
    assert running.returncode == 143
    assert not supervise.is_running(tmp_path)
    assert not [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(tmp_path) in " ".join(process.info["cmdline"] or ())
    ]
