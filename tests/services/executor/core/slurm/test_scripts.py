"""The files of a gang, and that a value of the tenant is no command of the script."""

from __future__ import annotations

import shlex
from dataclasses import replace

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.noted import output_name
from services.executor.core.slurm.scripts import (
    batch_script,
    environment_script,
    hosts,
    worker_script,
)
from tests.services.executor.core.engines.looks import gang_of, placed_history

HOSTILE = "a'; touch /tmp/x; echo '$(id)"


def with_launch(**fields: object) -> EngineGang:
    gang = gang_of(placed_history())
    launch = gang.launch.model_copy(update=fields)
    return EngineGang(
        gang.identity, tuple(replace(worker, launch=launch) for worker in gang.workers)
    )


def test_the_tasks_of_slurm_are_the_ranks() -> None:
    gang = gang_of(placed_history())
    assert hosts(gang) == "n2\nn1\nn1\n"
    script = worker_script(gang, "/s/g")
    assert "n2/0) export RANK=0" in script and "n1/2) export RANK=2" in script


def test_a_program_begins_once_and_only_in_the_job_that_was_named() -> None:
    lines = batch_script(gang_of(placed_history()), "/s/g", "/opt/slurm/bin").splitlines()
    named = next(n for n, line in enumerate(lines) if '"$job" = "$SLURM_JOB_ID"' in line)
    decided = next(n for n, line in enumerate(lines) if line.startswith("ln -sT"))
    begun = next(n for n, line in enumerate(lines) if line.startswith("srun"))
    assert named < decided < begun
    assert "export PATH=/opt/slurm/bin:" in lines[2]


def test_values_of_a_tenant_are_quoted() -> None:
    gang = with_launch(command=("echo", HOSTILE), workdir=HOSTILE, env={"A": HOSTILE})
    quoted = shlex.quote(HOSTILE)
    script = worker_script(gang, "/s/g")
    assert f"echo {quoted} 2>&3" in script and f"cd {quoted} ||" in script
    assert f"A={quoted}\n" in environment_script(gang)


def test_a_walltime_is_kept_by_the_wrapper() -> None:
    script = worker_script(with_launch(walltime_s=90.0, grace_s=5.0), "/s/g")
    assert "timeout --kill-after=5 90 " in script and "-ge 90000" in script
    assert "timeout" not in worker_script(with_launch(), "/s/g")


def test_the_wrapper_writes_the_output_that_is_read() -> None:
    assert output_name(3) == "rank-3.out"
    assert "rank-$RANK.out" in worker_script(with_launch(), "/s/g")
