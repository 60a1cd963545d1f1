"""`berth replay TRACE`: a recorded or synthetic workload into the stack that runs here."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import AsJson, Data
from cli.calls import answered, api, items, pages
from cli.errors import BadInput, NotFound
from cli.http_api import Api
from cli.output import emit, lines
from cli.target import data_dir


def replay(
    trace: Annotated[
        str, typer.Argument(help="A parquet file, a name of a shared trace, or `synthetic`.")
    ],
    pool: Annotated[str, typer.Option(help="A virtual pool.")] = "virtual",
    jobs: Annotated[int | None, typer.Option(min=1, help="Only the first N jobs.")] = None,
    speed: Annotated[
        float | None, typer.Option(min=0.001, max=1e7, help="Default: the pool's time scale.")
    ] = None,
    run: Annotated[
        str, typer.Option(help="Part of every idempotency key: the same run changes nothing.")
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Until all jobs have ended.")] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Of the waiting, in seconds.")] = 3600,
    seed: Annotated[int, typer.Option(help="Of the synthetic workload.")] = 0,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Submit a workload through Kafka, each job at its time."""
    from cli.commanding import refuse_recorded
    from cli.replay.runner import Run, replayed
    from cli.replay.submission import of_workload
    from cli.replay.workload import timed, workload
    from infra.supervisor.running import load

    found = workload(trace, jobs, seed)
    stack, client = load(data_dir(data)), api(data)
    refuse_recorded(stack, "replay")
    scale = speed or _time_scale(client, pool)
    _register(client, data_dir(data), sorted({job.tenant for job in found}), pool)
    name = run or f"replay-{secrets.token_hex(4)}"
    due = timed(found, scale, lambda job: of_workload(job, pool, name))
    told = replayed(Run(stack, due, scale, wait, timeout))
    if as_json:
        emit({"run": name, "speed": scale, **told})
    else:
        lines([f"{name}: " + ", ".join(f"{count} {what}" for what, count in told["jobs"].items())])
    if told["missing"]:
        raise typer.Exit(1)


def _time_scale(client: Api, pool: str) -> float:
    for row in items(client.get("/v1/pools")):
        if row["pool"] == pool:
            return float(str(row["time_scale"]))
    raise NotFound(f"no pool {pool}")


def _register(client: Api, folder: Path, wanted: list[str], pool: str) -> None:
    """Tenants of the workload that nobody has let in yet, with their topics."""
    from cli.bring_up import make_topics
    from infra.supervisor.running import load

    known = {str(row["tenant"]): row["active"] for row in pages(client, "/v1/tenants", {}, 10**6)}
    retired = [name for name in wanted if known.get(name) is False]
    if retired:
        raise BadInput(f"retired tenants of this workload: {', '.join(retired)}")
    make_topics(load(folder), wanted)
    tickets = [
        client.post("/v1/tenants", {"tenant": name, "default_pool": pool})
        for name in wanted
        if name not in known
    ]
    for ticket in tickets:
        answered(client, ticket)
