"""`berth verify`, `projections status|rebuild`, `bench`: does it hold what it promises?"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cli.arguments import AsJson, Data
from cli.errors import BadInput, NotFound
from cli.output import emit, lines, table, working
from cli.target import data_dir

SHOWN = 50
BENCHMARKS = "benchmarks"

projections = typer.Typer(no_args_is_help=True, help="Read models: status, rebuild.")


def verify(as_json: AsJson = False, data: Data = None) -> None:
    """Read every ledger from its beginning and say whether every promise was kept."""
    from cli.verifying import verified
    from infra.supervisor.running import load

    stack = load(data_dir(data))
    with working("verifying", as_json) as say:
        found = verified(stack, say)
    if as_json:
        emit(
            {
                "verify": "failed" if found.violations else "ok",
                "violations": found.violations,
                "counts": found.counts,
                "rules": found.rules,
            }
        )
    else:
        broken = {each.partition(":")[0] for each in found.violations}
        table(("RULE", "HOLDS"), ((rule, rule not in broken) for rule in found.rules))
        lines(found.violations[:SHOWN])
        counted = ", ".join(f"{count} {name}" for name, count in sorted(found.counts.items()))
        lines([f"{len(found.violations)} violations; {counted}"])
    if found.violations:
        raise typer.Exit(1)


@projections.command()
def status(as_json: AsJson = False, data: Data = None) -> None:
    """How far the read models have come, ledger by ledger."""
    from cli.read_models import standing
    from infra.supervisor.running import load

    rows = standing(load(data_dir(data)))
    if as_json:
        emit(rows)
        return
    columns = ("LEDGER", "PARTITION", "SEQ", "OFFSET", "END", "BEHIND")
    names = ("ledger", "partition", "seq", "next", "end", "behind")
    table(columns, ([row[name] for name in names] for row in rows), "nothing projected yet")


@projections.command()
def rebuild(
    compare: Annotated[
        bool, typer.Option("--verify", help="Exit with 1 where the live tables were different.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare and do not swap.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Build all read models anew from the ledgers beside the live ones, compare, swap."""
    from cli.read_models import rebuilt
    from infra.supervisor.running import load

    stack = load(data_dir(data))
    with working("folding", as_json) as say:
        found = rebuilt(stack, not dry_run, say)
    if as_json:
        emit(found)
    else:
        rows = ((name, same) for name, same in found["tables"].items())
        table(("TABLE", "EQUAL"), rows)
        lines([f"{found['events']} events in {found['wall_s']} s; swapped: {found['swapped']}"])
    if compare and found["different"]:
        raise typer.Exit(1)


def bench(
    context: typer.Context, name: Annotated[str, typer.Argument(help="Such as spine.")]
) -> None:
    """Run a benchmark; what follows its name is its own, --json among it."""
    import runpy
    from importlib.util import find_spec

    if not name.isidentifier():
        raise BadInput(f"{name!r} is no name of a benchmark")
    known = find_spec(BENCHMARKS) and find_spec(f"{BENCHMARKS}.{name}")
    if not known:
        raise NotFound(f"no benchmark {name}; there are: {', '.join(_benchmarks()) or 'none'}")
    sys.argv = [f"berth bench {name}", *context.args]
    runpy.run_module(f"{BENCHMARKS}.{name}", run_name="__main__")


def _benchmarks() -> list[str]:
    import pkgutil
    from importlib.util import find_spec

    found = find_spec(BENCHMARKS)
    places = found.submodule_search_locations if found else None
    return sorted(each.name for each in pkgutil.iter_modules(places or []) if not each.ispkg)
