"""`berth up`, `down`, `restart`, `status`, `access bootstrap`: manage a local stack."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.api.answers import report
from cli.api.target import DATA, DATA_VARIABLE, data_dir, key_of, no_stack, store_key
from cli.commands.demo import broker_of, tracing_of
from cli.errors import BadInput, Refused, Unreachable
from cli.input.arguments import AsJson, Data, Tls
from cli.input.stack_options import external_kafka, external_postgres, listen_of
from cli.text.output import emit, lines, report_line, table
from cli.text.times import span

if TYPE_CHECKING:
    from infra.supervisor.running import RunningStack
    from infra.supervisor.supervise import StackOptions

READY_S = 180.0
IN_MEMORY = "the embedded broker keeps data in memory: jobs, tenants and keys end with the stack"
LOST = "its jobs, tenants and keys are gone; `berth up --broker kafka` keeps them"
FIRST_STEPS = (
    "next      berth tenants add TENANT --pool local",
    "          berth submit --tenant TENANT --wait -- sh -c 'echo hello; pwd'",
)
"""A new installation lacks a tenant, in whose name jobs are submitted."""
access = typer.Typer(no_args_is_help=True, help="Bootstrap access.")


def up(
    broker: Annotated[
        str,
        typer.Option(
            help="embedded (loses all at `berth down`), kafka (needs Java), or HOST:PORT,... of "
            "a Kafka that runs already."
        ),
    ] = "embedded",
    postgres: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS|FILE",
            help="A Postgres that runs already: postgresql://USER@HOST/DATABASE?passfile=..., or a "
            "file with the address; the stack's own if not given.",
        ),
    ] = "",
    data: Annotated[
        Path | None, typer.Option(help="Data directory; defaults to BERTH_HOME, else .berth.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return once the stack is ready.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the API; 0 selects a free one.")
    ] = 0,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Address of the API for other machines (port 8443 if not given); nodes also use "
            "the port after it. Needs --tls.",
        ),
    ] = "",
    archive: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|s3://BUCKET/PREFIX?...",
            help="New folder, of another disk, or new prefix in S3, to which ledgers and their "
            "inputs are archived; a stack keeps the one that it was given.",
        ),
    ] = "",
    speed: Annotated[
        float,
        typer.Option(min=0.001, max=1e7, help="Cluster seconds per second in the virtual pool."),
    ] = 1.0,
    tracing: Annotated[
        bool, typer.Option("--tracing", help="Start Zipkin for traces (needs Java).")
    ] = False,
    tls: Tls = False,
    as_json: AsJson = False,
) -> None:
    """Start a stack: broker, Postgres, services, a virtual and a local pool.

    With the embedded broker, the default, everything is lost when the stack stops.
    """
    kafka = external_kafka(broker)
    chosen = broker_of(broker) if kafka is None else "external"
    database = external_postgres(postgres, chosen)
    if archive and chosen == "embedded":
        raise BadInput(
            "--archive: it would outlive the embedded broker, which keeps nothing; "
            "--broker must be kafka or HOST:PORT,..."
        )
    from infra.supervisor import supervise

    folder = data or Path(os.environ.get(DATA_VARIABLE, DATA))
    # Its ports are in use too, which would say less.
    if supervise.is_running(folder):
        raise Refused(f"a stack is already running in {folder}; stop it with `berth down`")
    address = listen_of(listen, port, tls)
    options = supervise.StackOptions(
        data_dir=folder,
        broker=chosen,
        kafka=kafka,
        postgres=database,
        http_port=port,
        listen=address,
        foreground=not detach,
        tracing=tracing_of(tracing),
        tls=tls,
        archive=archive,
    )
    try:
        from cli.stack.addresses import address_lines, monitoring_addresses

        had_key = bool(key_of(folder))
        stack = _started(options, speed)
        result = {"api": stack.gateway, "data": str(stack.data_dir), "broker": stack.broker}
        result |= {"llm": stack.llm}
        shown = [f"API {stack.gateway}", f"LLM {stack.llm}"]
        shown += [f"key {stack.data_dir / 'operator.key'}"]
        report(as_json, result | monitoring_addresses(stack), *shown, *address_lines(stack))
        if not stack.durable:
            report_line(IN_MEMORY)
        for line in FIRST_STEPS if is_new(stack, had_key) else ():
            report_line(line)
        if not detach:
            report_line("press Ctrl-C to stop")
            stay(folder)
    except supervise.OtherStack as error:
        raise Refused(str(error)) from None
    except BaseException:
        supervise.down(folder)
        raise


def _started(options: StackOptions, speed: float) -> RunningStack:
    from dataclasses import replace

    from cli.demo.pools import SHAPES
    from cli.stack.bring_up import VIRTUAL, open_up, with_nodes
    from cli.stack.machine import local_node
    from cli.stack.pool_defaults import cluster_pool
    from infra.supervisor import supervise
    from infra.supervisor.stack import AGENT, services_in
    from shared.contracts.pools import ConfigurePool

    options = replace(options, services=services_in(os.environ))
    virtual = json.loads(SHAPES.read_text())
    node = local_node("local")
    requested = with_nodes(options, {VIRTUAL: virtual}, node)
    stack = supervise.up(requested, report_line)
    pools = [
        cluster_pool(str(virtual["pool"]), speed),
        ConfigurePool(pool=node.pool, backends=("agent",)),
    ]
    open_up(stack, pools, [], node)
    names = tuple(service.name for service in options.services)
    supervise.wait_ready(stack.data_dir, (*names, AGENT), options.ready_timeout_s)
    return stack


def stay(data: Path) -> None:
    """Wait for a signal or for the end of the stack."""
    from infra.supervisor import supervise

    try:
        while supervise.is_running(data):
            signal.sigtimedwait({signal.SIGTERM}, 1.0)
    except KeyboardInterrupt:
        supervise.down(data)
        return
    report_line(supervise.why_stopped(data) or "stack stopped")
    raise typer.Exit(1)


def is_new(stack: RunningStack, had_key: bool) -> bool:
    """Return whether a stack has only just begun; one with data has a key from before its start."""
    return not (stack.durable and had_key)


def loses_jobs(stack: RunningStack) -> bool:
    """Return whether a stop loses what cannot be had again; a simulation is kept in its files."""
    return not stack.durable and not stack.recorded


def down(as_json: AsJson = False, data: Data = None) -> None:
    """Stop a stack."""
    from infra.supervisor import supervise

    folder = data_dir(data)
    ran = supervise.down(folder)
    if ran and loses_jobs(supervise.load(folder)):
        report_line(LOST)
    report(
        as_json, {"stopped": ran, "data": str(folder)}, "stopped" if ran else "no stack was running"
    )


def restart(
    services: Annotated[
        list[str] | None, typer.Argument(help="Services to restart; defaults to all.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Restart services one by one; each is ready before the next one stops.

    Without names all services are restarted, readers first: this rolls out a new version, since
    readers skip unknown events and every new event then has a reader that knows it. Jobs go on.
    """
    from infra.supervisor import supervise
    from infra.supervisor.stack import AGENT

    folder = data_dir(data)
    stack = supervise.load(folder)
    every = supervise.restartable(stack)
    allowed = {*every, *([AGENT] if stack.has_node else [])}
    if unknown := sorted(set(services or ()) - allowed):
        raise BadInput(f"unknown service: {unknown[0]}; available: {', '.join(sorted(allowed))}")
    if not supervise.is_running(folder):
        raise Unreachable(no_stack(folder))
    for name in services or every:
        is_retired = name in supervise.RETIRED
        if not as_json:
            report_line(f"stopping {name}, retired" if is_retired else f"restarting {name}")
        supervise.restart(folder, name)
        if not is_retired:
            supervise.wait_ready(folder, (name,), READY_S)
    report(as_json, {"restarted": services or every}, "all services ready")


def status(as_json: AsJson = False, data: Data = None) -> None:
    """List the processes of a stack; exit with 3 if none runs, with 1 if one is down."""
    from dataclasses import asdict

    from cli.stack.addresses import node_lines
    from infra.supervisor import supervise

    folder = data_dir(data)
    processes = supervise.status(folder)
    if as_json:
        emit([asdict(process) for process in processes])
    else:
        columns = ("PROCESS", "STATE", "PID", "UP", "READY")
        rows = (
            (process.name, process.state, process.pid, span(process.uptime_s * 1000), process.ready)
            for process in processes
        )
        table(columns, rows, no_stack(folder))
        if processes:
            lines(node_lines(supervise.load(folder)))
    if not all(process.ready for process in processes) or not processes:
        raise typer.Exit(1 if processes else 3)


@access.command()
def bootstrap(
    again: Annotated[
        bool, typer.Option("--again", help="Create another key if one exists.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Create the first admin key, directly through Kafka."""
    import asyncio

    from cli.stack.access_producer import refuse_recorded, send_to_access
    from cli.stack.bring_up import new_key
    from infra.supervisor.running import load

    folder = data_dir(data)
    stack = load(folder)
    refuse_recorded(stack, "access bootstrap")
    if key_of(folder) and not again:
        raise Refused(f"{folder} already has an operator key; use --again to create another")
    key, command = new_key("operator")
    asyncio.run(send_to_access(stack.connection("operator"), [command], stack.archive))
    path = store_key(folder, key)
    report(as_json, {"key": key, "file": str(path)}, key, f"stored in {path}")
