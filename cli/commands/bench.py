"""`berth bench`: run a benchmark, or list them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cli.errors import BadInput, NotFound
from cli.text.output import lines

BENCHMARKS = "benchmarks"


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
