"""Runs a script under two hash seeds: no decision may depend on the order of a set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ("1", "2")


def printed_under_two_hash_seeds(script: str) -> tuple[str, str]:
    """Return the output of the Python script in a process of its own, for each seed."""
    first, second = (_printed(script, seed) for seed in SEEDS)
    return first, second


def _printed(script: str, seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
