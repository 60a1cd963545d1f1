"""Figures as the JSON of a benchmark has them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def rounded(figures: DataclassInstance, digits: int) -> dict[str, Any]:
    """Return the fields by name, with so many digits after the point of each float."""
    return {
        name: round(value, digits) if isinstance(value, float) else value
        for name, value in asdict(figures).items()
    }
