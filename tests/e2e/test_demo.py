"""The main job of the product: one command, and jobs go from command to GPU and back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from cli.demo.llm import MOST_PASSED
from cli.demo.options import ABUSER, TENANTS

pytestmark = pytest.mark.stack
JOBS, SPEED = 50, 20_000
LIMIT_S = 600


def command(data: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "cli", "demo", "--data", str(data), *more]


def left_behind(data: Path) -> list[str]:
    """Return the processes with the folder of the stack in their command line."""
    processes = []
    for process in psutil.process_iter(["cmdline"]):
        if str(data) in " ".join(process.info["cmdline"] or []):
            processes.append(str(process))
    return processes


def test_a_demo_checks_itself_and_leaves_nothing_running(tmp_path: Path) -> None:
    data = tmp_path / "demo"
    done = subprocess.run(
        command(data, "--check", "--jobs", str(JOBS), "--speed", str(SPEED)),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["verify"] == "ok"
    assert summary["jobs"].pop("submitted") == JOBS == sum(summary["jobs"].values())
    assert summary["jobs"]["succeeded"] > summary["jobs"]["failed"] > 0
    assert summary["jobs"]["failed"] == summary["planned_failures"]
    assert summary["local_jobs"] == {"submitted": 3, "succeeded": 3}
    assert summary["speed"] == SPEED
    assert 0 < summary["first_placed_s"] < summary["wall_s"]
    assert summary["peak_pss_mib"] < 1024
    tenants = summary["llm"]["tenants"]
    assert {name for name, figures in tenants.items() if figures["finished"]} == {*TENANTS, ABUSER}
    assert summary["llm"]["passed_by_abuser"]["max"] <= MOST_PASSED
    assert summary["llm"]["failures"] == []
    assert left_behind(data) == []


def test_a_demo_that_is_ended_while_it_starts_leaves_nothing_running(tmp_path: Path) -> None:
    data = tmp_path / "demo"
    with subprocess.Popen(command(data), stderr=subprocess.PIPE, text=True) as process:
        ends_s = time.monotonic() + LIMIT_S
        while not (data / "supervisord.pid").exists() and time.monotonic() < ends_s:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGTERM)
        _, stderr = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr
    assert left_behind(data) == []
