"""Values of options that are one of a few names."""

from __future__ import annotations

from collections.abc import Iterable

from cli.errors import BadInput


def check_choice(option: str, name: str, choices: Iterable[str]) -> None:
    """Raise BadInput for another name than the choices."""
    names = list(choices)
    if name not in names:
        raise BadInput(f"{option}: {name!r}; one of {', '.join(names)} is allowed")
