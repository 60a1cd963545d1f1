"""`berth demo`: a complete stack with a replayed workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.api.target import DEMO_DATA
from cli.errors import BadInput, Refused
from cli.input.arguments import Tls


def demo(
    trace: Annotated[
        str, typer.Option(help="Trace file, name of a shared trace, or `synthetic`.")
    ] = "synthetic",
    jobs: Annotated[int, typer.Option(min=1, help="Number of jobs, from the first.")] = 200,
    speed: Annotated[
        str, typer.Option(help="Cluster seconds per second; `auto` ends within 3 minutes.")
    ] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Stop after the workload, verify, print a JSON summary.")
    ] = False,
    broker: Annotated[str, typer.Option(help="embedded or kafka (needs Java).")] = "embedded",
    data: Annotated[Path, typer.Option(help="Data directory; cleared at the start.")] = DEMO_DATA,
    timeout: Annotated[
        float | None, typer.Option(min=1, help="Timeout of the replay, in seconds.")
    ] = None,
    tracing: Annotated[
        bool, typer.Option("--tracing", help="Start Zipkin for traces (needs Java).")
    ] = False,
    tls: Tls = False,
    llm: Annotated[
        bool, typer.Option(help="Two emulated LLM engines, four tenants and an abuser.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic workload.")] = 0,
) -> None:
    """Start a stack, replay a workload and show its progress."""
    chosen = time_scale(speed, check)
    used = broker_of(broker)
    from cli.demo.options import DemoOptions
    from cli.demo.run import demo as run_demo

    options = DemoOptions(
        data_dir=data,
        trace=trace,
        jobs=jobs,
        speed=chosen,
        check=check,
        broker=used,
        timeout_s=timeout,
        seed=seed,
        tracing=tracing_of(tracing),
        tls=tls,
        llm=llm,
    )
    raise typer.Exit(run_demo(options))


def tracing_of(requested: bool) -> bool:
    """Return whether to start Zipkin, fetching its jar first. Raises Refused if it cannot run."""
    if requested:
        from infra.machine.process import DidNotStart
        from infra.tracing import zipkin

        if lacks := zipkin.missing():
            raise Refused(f"--tracing: {lacks}")
        try:
            zipkin.fetch()
        except DidNotStart as error:
            raise Refused(f"--tracing: {error}") from None
    return requested


def time_scale(text: str, check: bool) -> float | None:
    """Parse --speed; None means `auto`."""
    if text == "auto" or (not text and check):
        return None
    try:
        value = float(text or 600)
    except ValueError:
        raise BadInput(f"invalid --speed: {text!r}; must be a number or auto") from None
    if not 0 < value <= 1e7:
        raise BadInput(f"invalid --speed: {text!r}; must be above 0 and at most 1e7")
    return value


def broker_of(text: str) -> Literal["embedded", "kafka"]:
    match text:
        case "embedded" | "kafka":
            return text
        case _:
            raise BadInput(f"invalid --broker: {text!r}; must be embedded or kafka")
