"""`berth bench NAME`: the fields of a benchmark's options are its flags; JSON is the last line."""

from __future__ import annotations

import argparse
import asyncio
import json
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
    result = asyncio.run(run(options(**given), say))
    sys.stdout.write(json.dumps(result, indent=None if as_json else 1) + "\n")


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
