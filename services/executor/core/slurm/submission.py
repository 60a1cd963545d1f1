"""The arguments by which Slurm allocates a gang on exactly its nodes."""

from __future__ import annotations

import math
from typing import NamedTuple

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.slurm.scripts import HOSTS

MARGIN_S = 60.0
"""Slurm counts in minutes, and the worker's own wrapper ends it at its walltime."""


class SlurmOptions(NamedTuple):
    """Settings of an operator for the jobs of a pool."""

    partition: str = ""
    user: str = ""
    """UNIX user of the jobs; empty: that of the executor."""
    account: str = ""
    """Account of the jobs; empty: the default of their user."""
    qos: str = ""
    """Quality of service of the jobs; empty: the default of their account."""


def sbatch_arguments(
    gang: EngineGang, folder: str, options: SlurmOptions, private: str
) -> list[str]:
    """Return the arguments of `sbatch` but for the script.

    A file in the folder `private`, which no tenant can change, has the node of each task: it pins
    the job and puts rank 0 first. Slurm never queues
    the job again by itself, and lets no second job of this name begin while one is there. GPUs are
    allocated by number: their indices cannot be chosen.
    """
    launch = gang.launch
    cpus = max(1, math.ceil(launch.cpus))
    arguments = [
        "--parsable",
        "--no-requeue",
        "--dependency=singleton",
        f"--job-name={gang.identity}",
        f"--comment={gang.identity}",
        f"--nodelist={private}/{HOSTS}",
        "--distribution=arbitrary",
        f"--nodes={launch.nodes}",
        f"--ntasks={launch.world_size}",
        f"--cpus-per-task={cpus}",
        f"--mem-per-cpu={max(1, math.ceil(launch.mem_gib * 1024 / cpus))}M",
        f"--output={folder}/job.out",
        f"--chdir={folder}",
        "--export=NIL",
        "--open-mode=append",
    ]
    if launch.gpus:
        arguments.append(f"--gpus-per-task={len(launch.gpus)}")
    if launch.walltime_s is not None:
        minutes = math.ceil((launch.walltime_s + launch.grace_s + MARGIN_S) / 60)
        arguments.append(f"--time={minutes}")
    if options.partition:
        arguments.append(f"--partition={options.partition}")
    if options.account:
        arguments.append(f"--account={options.account}")
    if options.qos:
        arguments.append(f"--qos={options.qos}")
    if options.user:
        arguments.append(f"--uid={options.user}")
    return arguments
