"""The allocation is pinned to the nodes of the gang, and is never queued again by Slurm."""

from __future__ import annotations

from dataclasses import replace

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.slurm.submission import SlurmOptions, sbatch_arguments
from tests.services.executor.core.engines.looks import IDENTITY, gang_of, placed_history


def test_a_gang_is_one_job_on_its_nodes() -> None:
    arguments = sbatch_arguments(
        gang_of(placed_history()), "/s/g", SlurmOptions("main", "ada", "lab", "low"), "/p"
    )
    assert {
        "--no-requeue",
        "--dependency=singleton",
        f"--comment={IDENTITY}",
        f"--job-name={IDENTITY}",
        "--nodelist=/p/hosts",
        "--distribution=arbitrary",
        "--nodes=2",
        "--ntasks=3",
        "--gpus-per-task=1",
        "--partition=main",
        "--uid=ada",
        "--account=lab",
        "--qos=low",
    } <= set(arguments)
    assert not any(argument.startswith("--time") for argument in arguments)


def test_limits_are_rounded_up() -> None:
    gang = gang_of(placed_history())
    launch = gang.launch.model_copy(
        update={"cpus": 1.5, "mem_gib": 3.0, "gpus": (), "walltime_s": 61.0, "grace_s": 0.0}
    )
    workers = tuple(replace(worker, launch=launch) for worker in gang.workers)
    changed = EngineGang(gang.identity, workers)
    arguments = sbatch_arguments(changed, "/s/g", SlurmOptions(), "/p")
    assert {"--cpus-per-task=2", "--mem-per-cpu=1536M", "--time=3"} <= set(arguments)
    prefixes = ("--gpus", "--uid", "--partition", "--account", "--qos")
    assert not any(argument.startswith(prefixes) for argument in arguments)
