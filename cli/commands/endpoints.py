"""`berth endpoints`: LLM endpoints and their engines."""

from __future__ import annotations

import typer

from cli.commands.endpoints_plan import add_plan

endpoints = typer.Typer(no_args_is_help=True, help="LLM endpoints: plan.")
add_plan(endpoints)


@endpoints.callback()
def _endpoints() -> None:
    """Keep the name of the one command in the command line."""
