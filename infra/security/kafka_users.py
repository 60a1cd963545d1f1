"""Passwords of Kafka users: one private file each, created once."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from shared.secrets import private_file

PREFIX = "kafka_"
SECRET_BYTES = 32
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


class NoPassword(SystemExit):
    """A user's password file is missing or invalid."""


def path_of(folder: Path, user: str) -> Path:
    """Return the password file of a user (`BERTH_KAFKA_PASSWORD_FILE` of a service)."""
    if not NAME.fullmatch(user):
        raise NoPassword(f"{user[:100]!r} is no name of a Kafka user")
    return folder / f"{PREFIX}{user}"


def make(folder: Path, users: Iterable[str], mode: int = 0o600) -> list[str]:
    """Create missing passwords; return the users that got one."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return [user for user in users if _create(path_of(folder, user), mode)]


def password(folder: Path, user: str) -> str:
    """Return a user's password. Raises NoPassword without quoting the content."""
    path = path_of(folder, user)
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NoPassword(f"{path}: {getattr(error, 'strerror', 'not ASCII')}") from None
    if len(text) < SECRET_BYTES:
        raise NoPassword(f"{path}: shorter than {SECRET_BYTES} characters; remove it for a new one")
    return text


def new_password() -> str:
    """Return a random password of 256 bits."""
    return secrets.token_urlsafe(SECRET_BYTES)


def _create(path: Path, mode: int) -> bool:
    return private_file.create(path, new_password() + "\n", mode)
