"""Health."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class Health(TypedDict):
    """Liveness."""

    status: Literal["ok"]


class Readiness(TypedDict):
    """Readiness for commands."""

    broker: bool
    """The broker answers."""
    access: bool
    """Keys are loaded."""
    ready: bool
