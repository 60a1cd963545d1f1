"""Makes the secrets of docker-compose.yml once, as files that only this user can reach."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

PASSWORD, DSN = "postgres_password", "postgres_dsn"
ROLES = ("projector", "gateway")
"""Services that have a role of their own in Postgres, and so an address of their own."""
NAMES = (PASSWORD, DSN, *(f"{DSN}_{role}" for role in ROLES))


def make(folder: Path) -> bool:
    """Write what is missing; what is there already stays, for the database knows it."""
    if all((folder / name).exists() for name in NAMES):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    if not (folder / DSN).exists():
        password = secrets.token_urlsafe(32)
        _write(folder / PASSWORD, password)
        _write(folder / DSN, _address("berth", password))
    for role in ROLES:
        path = folder / f"{DSN}_{role}"
        if not path.exists():
            _write(path, _address(f"berth_{role}", secrets.token_urlsafe(32)))
    return True


def _address(user: str, password: str) -> str:
    return f"postgresql://{user}:{password}@postgres:5432/berth"


def _write(path: Path, text: str) -> None:
    # The folder is closed; inside a container the reader is another user, so the file is not.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    with os.fdopen(descriptor, "w") as out:
        out.write(text)


def main() -> None:
    """`python -m infra.compose_secrets FOLDER`"""
    parser = argparse.ArgumentParser(prog="python -m infra.compose_secrets", description=__doc__)
    parser.add_argument("folder", type=Path)
    make(parser.parse_args().folder)


if __name__ == "__main__":
    main()
