"""`berth exec` and `berth shell`: programs in workers of jobs, at the user's terminal."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from cli.api.answers import api, await_answer
from cli.api.http import Api, part
from cli.api.ids import job_id
from cli.commands.jobs import JobArgument
from cli.commands.logs import report_wait
from cli.commands.terminal_session import run_in_worker
from cli.errors import CliError
from cli.input.arguments import Data
from cli.input.job_file import merged
from cli.input.quantities import parse_memory_gib, parse_walltime_s
from cli.text.output import report_line

WAITS = (
    "n=0; while [ $n -lt 12 ]; do sleep 5;"
    " if grep -qs BERTH_TERMINAL= /proc/[0-9]*/environ; then n=0; else n=$((n+1)); fi; done"
)
"""Of a job that is there for its terminals: it ends a minute after the last one."""
SHELL_NAME = "shell"
EIGHT_HOURS_S = 28_800.0

Tty = Annotated[
    bool | None,
    typer.Option(
        "--tty/--no-tty", help="A terminal or pipes; a terminal where stdin and stdout are one."
    ),
]


def exec_(
    job: JobArgument,
    command: Annotated[
        list[str] | None, typer.Argument(help="Command, after `--`; a shell if none is given.")
    ] = None,
    worker: Annotated[int, typer.Option(min=0, help="Rank of the worker.")] = 0,
    has_tty: Tty = None,
    data: Data = None,
) -> None:
    """Run a command in a worker of a running job: `berth exec JOB -- nvidia-smi`.

    It runs as the worker's user, with its variables, folders, GPUs and limits, and ends with it.
    The exit code is the command's. Its pool has to permit it (`berth pools set POOL
    terminals=true`), and you may do it to jobs that you may cancel.
    """
    client = api(data)
    raise typer.Exit(run_in_worker(client, job_id(client, job), worker, command or [], has_tty))


def shell(
    command: Annotated[
        list[str] | None, typer.Argument(help="Command in place of a shell, after `--`.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant that owns the job.")] = None,
    pool: Annotated[str | None, typer.Option(help="Pool; defaults to the tenant's pool.")] = None,
    gpus: Annotated[float | None, typer.Option(help="GPUs.")] = None,
    mem: Annotated[
        float | None,
        typer.Option(parser=parse_memory_gib, metavar="GIB", help="Memory, in GiB, or 512M, 16G."),
    ] = None,
    cpus: Annotated[float | None, typer.Option(help="CPU cores.")] = None,
    gpu_type: Annotated[
        list[str] | None, typer.Option(help="Allowed GPU type; may be repeated.")
    ] = None,
    workdir: Annotated[
        str | None, typer.Option(help="Absolute directory of the worker on its node.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Container image of the worker.")] = None,
    walltime: Annotated[
        float,
        typer.Option(
            parser=parse_walltime_s,
            metavar="TIME",
            help="Longest time: seconds, or 90m, 12h; 8 hours if not given.",
        ),
    ] = EIGHT_HOURS_S,
    has_tty: Tty = None,
    data: Data = None,
) -> None:
    """Get a shell on a node: `berth shell --gpus 1`. Submits a job, and ends it with the shell.

    Ctrl-C while it waits cancels the job. A job whose shell is cut off ends a minute later.
    """
    body = merged(
        {},
        {"tenant": tenant, "pool": pool},
        {
            "name": SHELL_NAME,
            "command": ["sh", "-c", WAITS],
            "gang": {"gpus_per_worker": gpus, "mem_gib_per_worker": mem, "cpus_per_worker": cpus},
            "gpu_types": gpu_type,
            "workdir": workdir,
            "image": image,
            "walltime_s": walltime,
            "retry": {"max_attempts": 1},
        },
    )
    client = api(data)
    ticket = client.post("/v1/jobs", body)
    job = str(ticket["job_id"])
    report_line(f"submitted: {job}")
    try:
        await_answer(client, ticket)
        _wait_until_it_runs(client, job)
        code = run_in_worker(client, job, 0, command or [], has_tty)
    finally:
        _cancel(client, job)
    raise typer.Exit(code)


def _wait_until_it_runs(client: Api, job: str) -> None:
    """Report on stderr what it waits for. Raises CliError for a job that ends before."""
    path, query = f"/v1/jobs/{part(job)}/logs", {"follow": "true", "status": "true"}
    shown = "submitted"
    for event, text, _ in client.follow(path, query, report_line):
        frame = json.loads(text)
        if event == "status":
            shown = report_wait(client, frame, shown)
            if frame["phase"] == "running":
                return
        elif event == "end":
            break
    raise CliError(f"job {job} ended before its shell began; `berth show {job}` says why")


def _cancel(client: Api, job: str) -> None:
    """End the job; one that has ended, or cannot be reached now, ends by itself."""
    try:
        client.post(f"/v1/jobs/{part(job)}/cancel", {"reason": "its shell has ended"})
    except CliError as error:
        report_line(f"{job} is not cancelled yet, and ends a minute after its shell: {error}")
