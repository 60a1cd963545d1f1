"""The list of bounds that submissions may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.text.output import emit, table

if TYPE_CHECKING:
    from shared.contracts.bounds import JobBounds


def show_bounds(kind: type[JobBounds], as_json: bool) -> None:
    """Print each bound with its default and meaning."""
    rows = [
        {"bound": name, "default": field.default, "meaning": field.description}
        for name, field in kind.model_fields.items()
    ]
    if as_json:
        emit(rows)
    else:
        table(("BOUND", "DEFAULT", "MEANING"), (tuple(row.values()) for row in rows))
