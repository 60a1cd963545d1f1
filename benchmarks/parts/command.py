"""Command line of `berth bench NAME`: the fields of a benchmark's options are its flags."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from shared.process.progress import ReportLine

Json = dict[str, object]
O = TypeVar("O")  # noqa: E741


def serve(
    run: Callable[[O, ReportLine], Coroutine[Any, Any, Json]], options: type[O], about: str
) -> None:
    """Parse the command line, run, and print the result as JSON; progress goes to stderr."""
    parser = argparse.ArgumentParser(
        prog=sys.argv[0], description=about.splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print the JSON object on one line")
    for field in fields(options):  # type: ignore[arg-type]
        assert field.default is not MISSING, "every option of a benchmark has a default"
        flag = f"--{field.name.replace('_', '-')}"
        kind = type(field.default)
        if kind is bool:
            parser.add_argument(flag, dest=field.name, action="store_true")
            continue
        parser.add_argument(
            flag, dest=field.name, type=kind, default=field.default, help=f"default {field.default}"
        )
    arguments = vars(parser.parse_args())
    as_json = bool(arguments.pop("json"))
    try:
        result = asyncio.run(stoppable(run(options(**arguments), report_line)))
    except asyncio.CancelledError:
        parser.exit(128 + signal.SIGTERM, f"{parser.prog}: terminated\n")
    except ValueError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    sys.stdout.write(json.dumps(result, indent=None if as_json else 1) + "\n")


async def stoppable(work: Coroutine[Any, Any, Json]) -> Json:
    """Let SIGTERM cancel the run as Ctrl-C does, so that it stops what it has started."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def report_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
