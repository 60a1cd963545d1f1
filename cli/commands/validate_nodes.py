"""`berth nodes validate`: which of several nodes, or which link between them, is slow."""

from __future__ import annotations

import shlex
import time
from typing import Annotated, cast

import typer

from cli.api.answers import Watch, api, items, pages
from cli.api.http import Api, Json, part
from cli.api.ids import job_id
from cli.commands.outcome import ended, explain_failures
from cli.errors import BadInput, NotFound
from cli.input.arguments import AsJson, Data
from cli.input.validation import validation_spec
from cli.text.output import emit, lines, report_line
from cli.text.times import parse_span_s
from cli.text.validation import VALIDATED, verdict_lines

RESULT_S = 15.0
LOOK_S = 0.3
MOST_NODES = 10_000


def validate(
    nodes: Annotated[
        list[str] | None, typer.Argument(help="Nodes to compare, 2 to 64.", metavar="NODE...")
    ] = None,
    job: Annotated[
        str | None, typer.Option(help="The nodes of this job's last start, and its tenant.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Tenant whose quota the measuring job counts against.")
    ] = None,
    span: Annotated[
        str, typer.Option("--for", help="Longest time that it runs, such as 90s, 5m.")
    ] = "2m",
    priority: Annotated[
        str, typer.Option("--class", help="Priority class: a higher one stops lower jobs there.")
    ] = "normal",
    command: Annotated[
        str | None, typer.Option(help="Program of your own in place of the built-in measurement.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Measure nodes and the links between them: which one is slow (role operator).

    A job takes all GPUs of each node, cordoned nodes too, so it waits until they are free: drain or
    cordon a node first. Each node computes, then neighbours exchange data, in 2 or 3 rounds.
    """
    client = api(data)
    names = list(nodes or [])
    if job is not None:
        whole = job_id(client, job)
        names = names or _nodes_of(client, whole)
        tenant = tenant or str(client.get(f"/v1/jobs/{part(whole)}")["tenant"])
    known = {str(row["node_id"]): row for row in pages(client, "/v1/nodes", {}, MOST_NODES)}
    if missing := [name for name in names if name not in known]:
        raise NotFound(f"no such node: {missing[0]}; `berth nodes` lists all")
    chosen = [known[name] for name in names]
    pools = {str(node["pool"]) for node in chosen}
    if len(pools) > 1:
        raise BadInput(f"NODE: of the pools {', '.join(sorted(pools))}; one pool can be measured")
    argv = shlex.split(command or "")
    spec = validation_spec(chosen, argv, parse_span_s(span) * _scale(client, pools), priority)
    body: Json = {"spec": spec, "pool": next(iter(pools)), "tenant": tenant}
    ticket = client.post("/v1/jobs", body)
    report_line(f"measuring: {ticket['job_id']} (`berth why {ticket['job_id']}` if it waits)")
    phases = ended(client, ticket)
    explain_failures(client, phases)
    result = _result(client, str(ticket["job_id"]))
    if as_json:
        emit({**ticket, "jobs": phases, "result": result})
    elif result is not None:
        lines(verdict_lines(result))
    else:
        report_line("nothing was measured; `berth logs` has the output of the workers")
    if result is None or set(phases.values()) != {"succeeded"}:
        raise typer.Exit(1)


def _nodes_of(client: Api, job: str) -> list[str]:
    """Return the nodes of a job's last start. Raises BadInput."""
    placed = [
        cast("Json", row["data"])
        for row in items(client.get(f"/v1/jobs/{part(job)}/timeline"))
        if row["type"] == "job.placed.v1"
    ]
    if not placed:
        raise BadInput(f"--job {job}: it has never run; name nodes instead")
    allocations = cast("list[Json]", placed[-1]["allocations"])
    return list(dict.fromkeys(str(allocation["node_id"]) for allocation in allocations))


def _scale(client: Api, pools: set[str]) -> float:
    """Return cluster seconds per second of the nodes' pool."""
    rows = items(client.get("/v1/pools"))
    return next((float(str(row["time_scale"])) for row in rows if row["pool"] in pools), 1.0)


def _result(client: Api, job: str) -> Json | None:
    """Return what fail-slow says of the measurements, which it does once the job has ended."""
    watch, ends_s = Watch(client), time.monotonic() + RESULT_S
    while time.monotonic() < ends_s:
        timeline = watch.look(f"/v1/jobs/{part(job)}/timeline") or {"items": []}
        for row in items(timeline):
            if row["type"] == VALIDATED:
                return cast("Json", row["data"])
        time.sleep(LOOK_S)
    return None
