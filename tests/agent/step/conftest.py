"""A bench with one worker, for the tests of this folder that need no other."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.step_bench import StepBench


@pytest.fixture
def bench() -> Iterator[StepBench]:
    with tempfile.TemporaryDirectory(prefix="berth-step-") as name:
        bench = StepBench(Path(name))
        yield bench
        bench.close()
