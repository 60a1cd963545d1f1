"""`berth up`, `down`, `restart`, `status`, `access bootstrap`: a stack on this machine."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.arguments import AsJson, Data, Tls
from cli.calls import report
from cli.demo_command import broker_of, tracing_of
from cli.errors import BadInput, Refused, Unreachable
from cli.output import emit, say, table
from cli.target import DATA, DATA_VARIABLE, data_dir, keep_key, key_of
from cli.times import span

if TYPE_CHECKING:
    from infra.supervisor.running import RunningStack

READY_S = 120.0
access = typer.Typer(no_args_is_help=True, help="The first key of an installation.")


def up(
    broker: Annotated[str, typer.Option(help="embedded, or kafka where Java is.")] = "embedded",
    data: Annotated[
        Path | None, typer.Option(help="Where it keeps what it keeps; or BERTH_HOME; or .berth.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return once it is ready.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the API; 0: any.")] = 0,
    speed: Annotated[
        float, typer.Option(min=0.001, max=1e7, help="Time scale of the virtual pool.")
    ] = 1.0,
    tracing: Annotated[
        bool, typer.Option("--tracing", help="Also Zipkin, which shows traces; needs Java.")
    ] = False,
    tls: Tls = False,
    as_json: AsJson = False,
) -> None:
    """Start everything: broker, Postgres, services, a virtual pool and one of real processes."""
    chosen = broker_of(broker)
    from infra.supervisor import supervise

    folder = data or Path(os.environ.get(DATA_VARIABLE, DATA))
    if supervise.is_running(folder):
        raise Refused(f"a stack runs in {folder} already; `berth down` stops it")
    options = supervise.StackOptions(
        data_dir=folder,
        broker=chosen,
        http_port=port,
        foreground=not detach,
        tracing=tracing_of(tracing),
        tls=tls,
    )
    try:
        from cli.watching import watched, watching

        stack = _started(options, speed)
        told = {"api": stack.gateway, "data": str(stack.data_dir), "broker": stack.broker}
        shown = [f"API {stack.gateway}", f"key {stack.data_dir / 'operator.key'}"]
        report(as_json, told | watched(stack), *shown, *watching(stack))
        if not detach:
            say("Ctrl-C stops everything")
            stay(folder)
    except BaseException:
        supervise.down(folder)
        raise


def _started(options: object, speed: float) -> RunningStack:
    from cli.bring_up import LOCAL, VIRTUAL, open_up, with_nodes
    from cli.demo.pools import SHAPES
    from cli.machine import inventory
    from cli.pool_defaults import cluster_pool
    from infra.supervisor import supervise
    from shared.contracts.access import ConfigurePool

    assert isinstance(options, supervise.StackOptions)
    virtual = json.loads(SHAPES.read_text())
    wanted = with_nodes(options, {VIRTUAL: virtual, LOCAL: inventory("local")})
    stack = supervise.up(wanted, say)
    pools = [
        cluster_pool(str(virtual["pool"]), speed),
        ConfigurePool(pool="local", backends=("process",)),
    ]
    open_up(stack, pools, [])
    names = tuple(each.name for each in options.services)
    supervise.wait_ready(stack.data_dir, names, options.ready_timeout_s)
    return stack


def stay(data: Path) -> None:
    """Until a signal, or until the stack has ended by itself."""
    from infra.supervisor import supervise

    try:
        while supervise.is_running(data):
            signal.sigtimedwait({signal.SIGTERM}, 1.0)
    except KeyboardInterrupt:
        supervise.down(data)
        return
    say(supervise.why_stopped(data) or "the stack has stopped")
    raise typer.Exit(1)


def down(as_json: AsJson = False, data: Data = None) -> None:
    """Stop a stack, in order."""
    from infra.supervisor import supervise

    folder = data_dir(data)
    ran = supervise.down(folder)
    report(as_json, {"stopped": ran, "data": str(folder)}, "stopped" if ran else "nothing ran")


def restart(
    services: Annotated[
        list[str] | None, typer.Argument(help="Only these; else all, one after the other.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Restart services while the others work; each is ready before the next one stops.

    Without names all of them, who only read first: so a new version is rolled out, since a reader
    passes over what it does not know, and a decider's new events find readers that know them.
    """
    from infra.supervisor import supervise

    folder = data_dir(data)
    ports = supervise.load(folder).ports
    known = list(reversed(ports))
    if unknown := sorted(set(services or ()) - set(known)):
        raise BadInput(f"no service {unknown[0]}; there are {', '.join(sorted(known))}")
    if not supervise.is_running(folder):
        raise Unreachable(f"no stack runs in {folder}")
    for name in services or known:
        if not as_json:
            say(f"restarting {name}")
        supervise.restart(folder, name)
        supervise.wait_ready(folder, (name,), READY_S)
    report(as_json, {"restarted": services or known}, "all ready")


def status(as_json: AsJson = False, data: Data = None) -> None:
    """Every process of a stack; exits with 3 when nothing runs, with 1 when something is down."""
    from dataclasses import asdict

    from infra.supervisor import supervise

    folder = data_dir(data)
    found = supervise.status(folder)
    if as_json:
        emit([asdict(each) for each in found])
    else:
        columns = ("PROCESS", "STATE", "PID", "UP", "READY")
        rows = (
            (each.name, each.state, each.pid, span(each.uptime_s * 1000), each.ready)
            for each in found
        )
        table(columns, rows, f"nothing runs in {folder}")
    if not all(each.ready for each in found) or not found:
        raise typer.Exit(1 if found else 3)


@access.command()
def bootstrap(
    again: Annotated[bool, typer.Option("--again", help="Though there is a key already.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Make the first admin key, straight through Kafka: for who holds the machine."""
    import asyncio

    from cli.bring_up import new_key
    from cli.commanding import ask_access, refuse_recorded
    from infra.supervisor.running import load

    folder = data_dir(data)
    stack = load(folder)
    refuse_recorded(stack, "access bootstrap")
    if key_of(folder) and not again:
        raise Refused(f"{folder} has an operator key already; --again makes another")
    key, command = new_key("operator")
    asyncio.run(ask_access(stack.connection("operator"), [command]))
    path = keep_key(folder, key)
    report(as_json, {"key": key, "file": str(path)}, key, f"kept in {path}")
