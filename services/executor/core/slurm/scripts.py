"""The files of a gang: the batch script, what each worker runs, and its environment.

The link `decided` (`core/engines/noted.py`) is made by the batch script, or forbidden by the
executor: a program runs at most once for a placement, however often Slurm, or an executor that
knows no better, starts the script.
"""

from __future__ import annotations

import shlex

from services.executor.core.engines.environment import DEFAULT_PATH, gang_variables, rank_variables
from services.executor.core.engines.gangs import EngineGang

READY, GO = "ready", "go"
BATCH, WORKER, ENVIRONMENT, HOSTS = "job.sh", "worker.sh", "environment.sh", "hosts"

BATCH_SCRIPT = """\
#!/bin/bash
# {identity}
export PATH={path}
cd {folder} || exit 1
[ -L decided ] && exit 0
echo "$SLURM_JOB_ID" > "ready.$SLURM_JOB_ID" && mv "ready.$SLURM_JOB_ID" ready
until [ -e go ]; do
    [ -L decided ] && exit 0
    sleep 0.1
done
read -r job port < go
[ "$job" = "$SLURM_JOB_ID" ] || exit 0
ln -sT "job-$SLURM_JOB_ID" decided || exit 0
export MASTER_PORT=$port SLURM_HOSTFILE={folder}/hosts
srun {arguments} /bin/bash {folder}/worker.sh
"""

WORKER_SCRIPT = """\
#!/bin/bash
# Runs one worker of the gang and notes its end: exit code, ms, time, reason.
folder={folder}
case "$SLURMD_NODENAME/$SLURM_PROCID" in
{cases}
*) exit 1 ;;
esac
exec >> "$folder/rank-$RANK.out" 2>&1
begun_ms=$(date +%s%3N)
note() {{
    local now_ms; now_ms=$(date +%s%3N)
    echo "$1 $((now_ms - begun_ms)) $now_ms $2" > "$folder/rank-$RANK.end.new"
    mv "$folder/rank-$RANK.end.new" "$folder/rank-$RANK.end"
    exit "$1"
}}
own_gpus=$CUDA_VISIBLE_DEVICES
set -a
. "$folder/environment.sh"
CUDA_VISIBLE_DEVICES=$own_gpus
: "${{HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}}"
set +a
# Slurm signals every process of the step: the program gets its own, and this shell outlives it.
trap : TERM INT HUP USR1 USR2
{enter}
command -v -- {program} > /dev/null || note 127 command_missing
# The shell's own words about a program that a signal ends are no output of it.
exec 3>&2 2> /dev/null
{command} 2>&3 3>&-
code=$?
{judge}
note "$code" ""
"""
ENTER_OWN = 'mkdir -p "$folder/work-$RANK" && cd "$folder/work-$RANK" || note 1 start_failed'
ENTER_NAMED = "cd {workdir} || note 1 workdir_missing"
JUDGE_WALLTIME = """\
if [ $(($(date +%s%3N) - begun_ms)) -ge {walltime_ms} ]; then
    case $code in 124 | 137) note 143 walltime ;; esac
fi"""


def batch_script(gang: EngineGang, folder: str, commands: str) -> str:
    """Return the script of the allocation; `commands` is the folder of Slurm's commands or ""."""
    launch = gang.launch
    arguments = [
        f"--ntasks={launch.world_size}",
        f"--nodes={launch.nodes}",
        "--distribution=arbitrary",
        "--kill-on-bad-exit=1",
        "--wait=0",
        "--mpi=none",
        "--input=none",
        "--export=ALL",
        "--quiet",
    ]
    path = f"{commands}:{DEFAULT_PATH}" if commands else DEFAULT_PATH
    return BATCH_SCRIPT.format(
        identity=gang.identity,
        path=shlex.quote(path),
        folder=shlex.quote(folder),
        arguments=" ".join(arguments),
    )


def worker_script(gang: EngineGang, folder: str) -> str:
    """Return what Slurm starts once per worker, as its task of the number of the rank."""
    launch = gang.launch
    command = shlex.join(launch.command)
    judge = ""
    if launch.walltime_s is not None:
        command = f"timeout --kill-after={launch.grace_s:g} {launch.walltime_s:g} {command}"
        judge = JUDGE_WALLTIME.format(walltime_ms=round(launch.walltime_s * 1000))
    enter = ENTER_OWN
    if launch.workdir:
        enter = ENTER_NAMED.format(workdir=shlex.quote(launch.workdir))
    return WORKER_SCRIPT.format(
        folder=shlex.quote(folder),
        cases="\n".join(_cases(gang)),
        enter=enter,
        program=shlex.quote(launch.command[0]),
        command=command,
        judge=judge,
    )


def _cases(gang: EngineGang) -> list[str]:
    """Return an assignment of its variables for each worker; a task elsewhere is refused."""
    cases = []
    for worker in gang.workers:
        variables = rank_variables(worker.launch, worker.node_id)
        assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        place = shlex.quote(f"{worker.node_id}/{worker.launch.rank}")
        cases.append(f"{place}) export {assigned} ;;")
    return cases


def hosts(gang: EngineGang) -> str:
    """Return the node of each worker, by rank: Slurm starts its tasks in this order."""
    return "".join(f"{worker.node_id}\n" for worker in gang.workers)


def environment_script(gang: EngineGang) -> str:
    """Return the variables of all workers; a file of the tenant's user alone."""
    variables = gang_variables(gang.launch)
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
