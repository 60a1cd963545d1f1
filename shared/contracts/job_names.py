"""Names and commands of jobs: what the runs of one program have in common."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TypeAlias

UNKNOWN_USER = "unknown"
"""The user of a job that names none."""
Program: TypeAlias = tuple[str, str, str]
"""Tenant, user and name pattern."""
ARGUMENTS_MOST, CHARACTERS_MOST = 64, 256
"""Of a command so many arguments count, and so many characters of each: it may have 2 MiB."""
LETTERS = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")
"""Digests have no digits and no hashes, so that a digest is a pattern itself."""
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


def command_digest(command: Sequence[str], image: str) -> str:
    """Return eight letters of a command and its image, without numbers and hashes in them; empty
    where a job names neither. Commands that differ in those run one program.
    """
    if not command and not image:
        return ""
    texts = (image, *(argument[:CHARACTERS_MOST] for argument in command[:ARGUMENTS_MOST]))
    pattern = "\x00".join(name_pattern(text) for text in texts)
    digest = hashlib.sha256(pattern.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:8].translate(LETTERS)
