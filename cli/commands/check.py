"""`berth verify`, `berth projections` and `berth bench`: verification and measurement."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cli.api.target import data_dir
from cli.errors import BadInput, NotFound
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, lines, table, working
from cli.text.times import clock

SHOWN = 50
BENCHMARKS = "benchmarks"

projections = typer.Typer(no_args_is_help=True, help="Read models: status, rebuild.")


def verify(
    whole: Annotated[
        bool, typer.Option("--whole", help="Read every ledger from its first record.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Verify the ledgers against the rules of the protocol, from the last green run on."""
    from cli.stack.verification import verified
    from infra.supervisor.running import load

    stack = load(data_dir(data))
    with working("verifying", as_json) as report_line:
        result = verified(stack, report_line, whole=whole)
    if as_json:
        emit(
            {
                "verify": "failed" if result.violations else "ok",
                "violations": result.violations,
                "open": result.open,
                "counts": result.counts,
                "rules": result.rules,
                "since_ms": result.since_ms,
            }
        )
    else:
        broken = {violation.partition(":")[0] for violation in result.violations}
        table(("RULE", "HOLDS"), ((rule, rule not in broken) for rule in result.rules))
        lines([*result.violations[:SHOWN], *result.open[:SHOWN]])
        counted = ", ".join(f"{count} {name}" for name, count in sorted(result.counts.items()))
        lines([f"{len(result.violations)} violations; {counted}"])
        if result.since_ms:
            lines([f"records since the green run of {clock(result.since_ms)}; all: --whole"])
    if result.violations:
        raise typer.Exit(1)


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


def bench(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Name of the benchmark; without one, list all names.")
    ] = None,
) -> None:
    """Run a benchmark; options after its name are passed to it."""
    import runpy
    from importlib.util import find_spec

    if name is None:
        lines(_benchmarks())
        return
    if not name.isidentifier():
        raise BadInput(f"invalid benchmark name: {name!r}")
    exists = find_spec(BENCHMARKS) and find_spec(f"{BENCHMARKS}.{name}")
    if not exists:
        raise NotFound(
            f"unknown benchmark: {name}; available: {', '.join(_benchmarks()) or 'none'}"
        )
    sys.argv = [f"berth bench {name}", *context.args]
    runpy.run_module(f"{BENCHMARKS}.{name}", run_name="__main__")


def _benchmarks() -> list[str]:
    import pkgutil
    from importlib.util import find_spec

    package = find_spec(BENCHMARKS)
    folders = package.submodule_search_locations if package else None
    return sorted(module.name for module in pkgutil.iter_modules(folders or []) if not module.ispkg)
