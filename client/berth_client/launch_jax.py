"""Runs a Python program as one process of a JAX cluster. Its text is the `-c` of a worker's Python.

    python3 -c TEXT GPUS [-m] PROGRAM ARGUMENTS

JAX reads no environment variable for the number of processes and the id of one (0.10), so that the
cluster is joined here, before the program: by all four arguments, as JAX would look for Slurm or
Kubernetes where one is left out. A program that calls `jax.distributed.initialize` itself goes on.
"""

import importlib
import os
import runpy
import sys


def main() -> None:
    gpus, *program = sys.argv[1:]
    cluster = importlib.import_module("jax").distributed
    cluster.initialize(
        f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
        int(os.environ["WORLD_SIZE"]),
        int(os.environ["RANK"]),
        local_device_ids=list(range(int(gpus))),
    )
    cluster.initialize = lambda *_, **__: None
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
