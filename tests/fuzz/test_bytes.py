"""Any bytes: kept ones of every bug, hostile ones, and some of a fuzzer's own making."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.corpus import SEEDS, corpus
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
RUNS = 500
"""Runs per target; `make fuzz` takes a longer time as an option."""


@pytest.mark.parametrize("target", TARGETS)
def test_no_kept_or_hostile_bytes_fail_a_target(target: str) -> None:
    for name, value in corpus(target):
        try:
            TARGETS[target](value)
        except BaseException as error:
            raise AssertionError(f"{target}: {name}") from error


def test_every_seed_belongs_to_a_target() -> None:
    assert {path.name for path in SEEDS.iterdir()} <= TARGETS.keys()


@pytest.mark.process
@pytest.mark.skipif(not importlib.util.find_spec("atheris"), reason="no atheris for this Python")
def test_no_bytes_of_a_fuzzer_fail_a_target() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.bytes_fuzzer", "--runs", str(RUNS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert {result["target"] for result in results} == set(TARGETS)
    for result in results:
        assert not result["failed"], (result["target"], result["input"], result["said"])
        assert result["runs"] >= RUNS
    assert done.returncode == 0
