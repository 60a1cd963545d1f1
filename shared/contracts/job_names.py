"""Names of jobs: what the runs of one program have in common."""

from __future__ import annotations

import re
from typing import TypeAlias

UNKNOWN_USER = "unknown"
"""The user of a job that names none."""
Program: TypeAlias = tuple[str, str, str]
"""Tenant, user and name pattern."""
_DIGITS = re.compile(r"[0-9a-f]{6,}|\d+")


def name_pattern(name: str) -> str:
    """Return the name without numbers and hashes: names that differ in those run one program."""
    return _DIGITS.sub("#", name.lower())


def program_of(tenant: str, user: str, name: str) -> Program | None:
    """Return the program of a job, None where its user or its name is not known.

    Without a user the names are those of many people: "worker" says nothing of a run time.
    """
    if not name or user in ("", UNKNOWN_USER):
        return None
    return tenant, user, name_pattern(name)
