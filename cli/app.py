"""The application object: Typer, with every failure reported as one line and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from cli.errors import FAILED, INTERRUPTED, UNREACHABLE, CliError
from cli.text.output import printable

DEBUG = "BERTH_DEBUG"
OURS = ("infra", "shared", "simulator")
PACKAGES = ("benchmarks", "berth_", "cli", "infra", "services", "shared", "simulator", "training")
INSTALL = "this command needs the whole suite, install berth[server]"
CLIENTS = ("aiokafka", "kafka", "asyncpg")


class ListGroup(TyperGroup):
    """A group of verbs whose options without a verb are those of `list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if is_option or not args else args)


class BerthApp(typer.Typer):
    """The command line; an error is one line on stderr, with a traceback if BERTH_DEBUG=1."""

    def __call__(self, *args: object, **options: object) -> object:
        # Logs of libraries would repeat the error line.
        logging.getLogger().addHandler(logging.NullHandler())
        try:
            return super().__call__(*args, **options)
        except CliError as error:
            _end(str(error), error.code)
        except BrokenPipeError:
            # The reader of stdout has closed it, as `head` does.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(FAILED) from None
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except SystemExit as error:
            if isinstance(error.code, str):
                _end(error.code, UNREACHABLE)
            raise
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            cause = first_cause(error)
            _end(_message(cause), _code(cause))


def first_cause(error: Exception) -> Exception:
    """Return the first error of a group of tasks: the others are mostly its consequences."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _message(error: Exception) -> str:
    """Return the message of an error; errors of libraries are prefixed with their class."""
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith(PACKAGES):
        return f"{INSTALL}: {error.name} is not installed"
    return str(error) if _origin(error) in OURS else f"{type(error).__name__}: {error}"


def _code(error: Exception) -> int:
    away = isinstance(error, (ConnectionError, TimeoutError)) or _origin(error) in CLIENTS
    return UNREACHABLE if away else FAILED


def _origin(error: Exception) -> str:
    return type(error).__module__.partition(".")[0]


def _end(text: str, code: int) -> NoReturn:
    line = printable(" ".join(text.split()))
    sys.stderr.write(f"berth: {line}\n")
    raise SystemExit(code)
