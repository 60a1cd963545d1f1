"""The words of a goal's result."""

from __future__ import annotations


def met(holds: bool) -> str:
    return "met" if holds else "not met"
