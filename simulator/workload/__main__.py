"""`python -m simulator.workload describe TRACE`: summarize a workload, as a table or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from simulator.workload.describe import Summary, summarize
from simulator.workload.errors import TraceError
from simulator.workload.source import load

TRACE_HELP = "a path, FORMAT:path, a name of a shared trace, `synthetic` or `synthetic:PROFILE`"
SHOWN = 8
BAD_TRACE = 2

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def workload() -> None:
    """Describe job traces before a replay."""


@app.command()
def describe(
    trace: Annotated[str, typer.Argument(help=TRACE_HELP)],
    jobs: Annotated[int | None, typer.Option(min=1, help="only the first N by time")] = None,
    seed: Annotated[int, typer.Option(help="of the synthetic generator")] = 0,
    capacity_gpus: Annotated[float, typer.Option(min=0.01, help="GPUs of the pool")] = 256,
    target_wall_s: Annotated[float, typer.Option(min=1, help="wall seconds to end within")] = 160,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Describe TRACE and the expected course of its replay."""
    try:
        trace_jobs = load(trace, jobs, seed=seed)
    except TraceError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(BAD_TRACE) from error
    summary = summarize(
        trace_jobs.jobs, capacity_gpus, target_wall_s, trace_jobs.never_started, trace_jobs.left_out
    )
    if as_json:
        typer.echo(json.dumps(asdict(summary)))
    else:
        Console().print(_table(trace, summary))


def _table(title: str, summary: Summary) -> Table:
    table = Table(title=title, show_header=False)
    for name, value in asdict(summary).items():
        rows = value.items() if name == "plan" else ((name, value),)
        for label, shown in rows:
            table.add_row(label, _shown(shown))
    return table


def _shown(value: object) -> str:
    match value:
        case dict():
            return _cut([f"{key}: {count:,}" for key, count in value.items()]) or "none"
        case tuple():
            return _cut([str(item) for item in value]) or "none"
        case float():
            return f"{value:,.2f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def _cut(items: list[str]) -> str:
    more = f", and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more


if __name__ == "__main__":
    app()
