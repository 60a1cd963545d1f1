"""Weights of small networks as modules of Python, and the lines of their trainings."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from training.evolution import Floats

WIDTH = 100


def write_weights(file: Path, head: str, weights: Floats) -> None:
    """Write the module: `head`, which ends with the begin of a string, and the weights in it."""
    words = " ".join(f"{value:.4g}" for value in weights)
    file.write_text(head + textwrap.fill(words, WIDTH, break_on_hyphens=False) + '\n"""\n')


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
