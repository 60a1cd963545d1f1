"""The verbs of the objects that an operator makes: the same ones for each of them."""

from __future__ import annotations

import pytest
import typer.main

from cli.main import app

GROUPS = ("pools", "endpoints", "keys", "users", "tenants", "secrets", "webhooks")
IMMUTABLE = {"keys"}
"""A key does not change: it is revoked, and another one is made."""


@pytest.mark.parametrize("group", GROUPS)
def test_objects_are_created_set_listed_and_deleted(group: str) -> None:
    commands = typer.main.get_command(app).commands[group].commands  # type: ignore[attr-defined]
    assert {"create", "list", "delete"} <= commands.keys()
    assert ("set" in commands) == (group not in IMMUTABLE)
