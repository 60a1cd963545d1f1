"""`berth projections`: the state of the read models, and their rebuild."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.target import data_dir
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, lines, table, working

projections = typer.Typer(no_args_is_help=True, help="Read models: status, rebuild.")


@projections.command()
def status(as_json: AsJson = False, data: Data = None) -> None:
    """Show how far the read models have been projected, per ledger."""
    from cli.stack.read_models import ledger_positions
    from infra.supervisor.running import load

    rows = ledger_positions(load(data_dir(data)))
    if as_json:
        emit(rows)
        return
    columns = ("LEDGER", "PARTITION", "SEQ", "OFFSET", "END", "BEHIND")
    names = ("ledger", "partition", "seq", "next", "end", "behind")
    table(columns, ([row[name] for name in names] for row in rows), "no read models yet")


@projections.command()
def rebuild(
    compare: Annotated[
        bool, typer.Option("--verify", help="Exit with 1 if the live tables differ.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare without swapping.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Rebuild all read models from the ledgers, compare them with the live ones, and swap."""
    from cli.stack.read_models import rebuilt
    from infra.supervisor.running import load

    stack = load(data_dir(data))
    with working("folding", as_json) as report_line:
        result = rebuilt(stack, not dry_run, report_line)
    if as_json:
        emit(result)
    else:
        rows = ((name, same) for name, same in result["tables"].items())
        table(("TABLE", "EQUAL"), rows)
        lines([f"{result['events']} events in {result['wall_s']} s; swapped: {result['swapped']}"])
        left = result["left"].items()
        lines(f"{rows} rows of {name} were left out, as by their retention" for name, rows in left)
    if compare and result["different"]:
        raise typer.Exit(1)
