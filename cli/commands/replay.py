"""`berth replay TRACE`: submit a recorded or synthetic workload to a running stack."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from cli.api.answers import api, await_answer, items, pages
from cli.api.http import Api
from cli.api.target import data_dir
from cli.errors import BadInput, NotFound
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, lines


def replay(
    trace: Annotated[
        str, typer.Argument(help="Trace file, name of a shared trace, or `synthetic`.")
    ],
    pool: Annotated[str, typer.Option(help="Pool to submit to.")] = "virtual",
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of jobs, from the first.")] = None,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e7,
            help="Cluster seconds per second; defaults to the pool's time scale.",
        ),
    ] = None,
    run: Annotated[
        str,
        typer.Option(help="Prefix of the idempotency keys; repeating a run submits nothing new."),
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all jobs have ended.")] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Timeout of --wait, in seconds.")] = 3600,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic workload.")] = 0,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Submit the jobs of a workload through Kafka, each at its time."""
    from cli.replay.runner import Run, replayed
    from cli.replay.submission import of_workload
    from cli.replay.workload import timed, workload
    from cli.stack.access_producer import refuse_recorded
    from infra.supervisor.running import load

    workload_jobs = workload(trace, jobs, seed)
    stack, client = load(data_dir(data)), api(data)
    refuse_recorded(stack, "replay")
    scale = speed or _time_scale(client, pool)
    _register(client, data_dir(data), sorted({job.tenant for job in workload_jobs}), pool)
    name = run or f"replay-{secrets.token_hex(4)}"
    due = timed(workload_jobs, scale, lambda job: of_workload(job, pool, name))
    result = replayed(Run(stack, due, scale, wait, timeout))
    if as_json:
        emit({"run": name, "speed": scale, **result})
    else:
        lines(
            [f"{name}: " + ", ".join(f"{count} {phase}" for phase, count in result["jobs"].items())]
        )
    if result["missing"]:
        raise typer.Exit(1)


def _time_scale(client: Api, pool: str) -> float:
    for row in items(client.get("/v1/pools")):
        if row["pool"] == pool:
            return float(str(row["time_scale"]))
    raise NotFound(f"no such pool: {pool}; `berth pools` lists all")


def _register(client: Api, folder: Path, requested: list[str], pool: str) -> None:
    """Register the tenants of the workload that are missing, and create their topics."""
    from cli.stack.bring_up import make_topics
    from infra.supervisor.running import load

    active_by_tenant = {
        str(row["tenant"]): row["active"] for row in pages(client, "/v1/tenants", {}, 10**6)
    }
    retired = [name for name in requested if active_by_tenant.get(name) is False]
    if retired:
        raise BadInput(f"retired tenants of this workload: {', '.join(retired)}")
    make_topics(load(folder), requested)
    tickets = [
        client.post("/v1/tenants", {"tenant": name, "default_pool": pool})
        for name in requested
        if name not in active_by_tenant
    ]
    for ticket in tickets:
        await_answer(client, ticket)
