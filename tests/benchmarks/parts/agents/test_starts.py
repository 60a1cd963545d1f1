"""Programs note their starts; the first of each job counts."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.parts.agents.starts import NOTE_START, read_starts


@pytest.mark.process
def test_a_program_notes_its_job_and_its_time(tmp_path: Path) -> None:
    noted = tmp_path / "starts"
    assert read_starts(noted) == {}
    before_ms = int(time.time() * 1000)
    for job_id in ("a", "b", "a"):
        subprocess.run(
            ["sh", "-c", NOTE_START, str(noted)], env={"BERTH_JOB_ID": job_id}, check=True
        )
    starts = read_starts(noted)
    assert list(starts) == ["a", "b"] and before_ms <= starts["a"] <= starts["b"]
