"""`berth completion`: commands and options are completed by a shell."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from cli.text.output import lines

NAME = "berth"
VARIABLE = "_BERTH_COMPLETE"
"""Set by the shell's function at a completion."""


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="Shell.")]) -> None:
    """Print the completion script of a shell.

    For this session: `source <(berth completion bash)`; for later ones write it to the folder that
    the shell reads, such as ~/.local/share/bash-completion/completions/berth.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    lines([get_completion_script(prog_name=NAME, complete_var=VARIABLE, shell=shell.value)])


def enable_completion() -> None:
    """Register the shells if this process was started to complete a command line."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
