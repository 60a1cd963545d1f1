"""The application object: Typer, with every failure as one line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer

from services.cli.errors import FAILED, INTERRUPTED, CliError

DEBUG = "BERTH_DEBUG"


class BerthApp(typer.Typer):
    """Never a traceback to the user, unless they ask for it with BERTH_DEBUG=1."""

    def __call__(self, *args: object, **options: object) -> object:
        try:
            return super().__call__(*args, **options)
        except CliError as error:
            _end(str(error), error.code)
        except BrokenPipeError:
            # The reader of our output left, as `head` does; nothing more can be said to it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(FAILED) from None
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            _end(f"{_name(error)}{error}", FAILED)


def _name(error: Exception) -> str:
    """Our own errors speak for themselves."""
    ours = type(error).__module__.partition(".")[0] in ("infra", "shared", "simulator")
    return "" if ours else f"{type(error).__name__}: "


def _end(text: str, code: int) -> NoReturn:
    line = " ".join(text.split())
    sys.stderr.write(f"berth: {line}\n")
    raise SystemExit(code)
