"""Compile the kernel into numba's cache on disk and report how long it took."""

from __future__ import annotations

import sys
import time

import numpy as np

from simulator.kernel.run import Rules, simulate
from simulator.kernel.warm import learn_counts
from simulator.kernel.work import build_work
from simulator.workload.source import read_columns


def main() -> None:
    """Run one small simulation, which compiles everything: all policies are one program."""
    began = time.process_time()
    work = build_work(read_columns("synthetic", 50))
    simulate(work, np.full(64, 8, np.int64), Rules(), counts=learn_counts(work))
    sys.stdout.write(f"kernel ready after {time.process_time() - began:.0f} CPU-s\n")


if __name__ == "__main__":
    main()
