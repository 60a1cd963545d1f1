"""`berth bench NAME`: the fields of a benchmark's options are its flags; JSON is the last line."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import MISSING, fields
from typing import Any, TypeVar

Json = dict[str, object]
Say = Callable[[str], None]
O = TypeVar("O")  # noqa: E741


def serve(run: Callable[[O, Say], Coroutine[Any, Any, Json]], options: type[O], about: str) -> None:
    """Parses the command line, runs, and prints; progress goes to stderr."""
    parser = argparse.ArgumentParser(
        prog=sys.argv[0], description=about.splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on one line")
    for field in fields(options):  # type: ignore[arg-type]
        assert field.default is not MISSING, "every option of a benchmark has a default"
        flag = f"--{field.name.replace('_', '-')}"
        kind = type(field.default)
        shown = f"default {field.default}"
        if kind is bool:
            parser.add_argument(flag, dest=field.name, action="store_true")
            continue
        parser.add_argument(flag, dest=field.name, type=kind, default=field.default, help=shown)
    given = vars(parser.parse_args())
    as_json = bool(given.pop("json"))
    try:
        result = asyncio.run(stoppable(run(options(**given), say)))
    except asyncio.CancelledError:
        parser.exit(128 + signal.SIGTERM, f"{parser.prog}: ended before it was done\n")
    except ValueError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    sys.stdout.write(json.dumps(result, indent=None if as_json else 1) + "\n")


async def stoppable(work: Coroutine[Any, Any, Json]) -> Json:
    """SIGTERM ends it as Ctrl-C does: what it has started is stopped first."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
