"""Makes the secrets of docker-compose.yml once, as files that only this user can reach."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

PASSWORD, DSN = "postgres_password", "postgres_dsn"


def make(folder: Path) -> bool:
    """Write password and address; what is there already stays, for the database knows it."""
    if (folder / DSN).exists():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    password = secrets.token_urlsafe(32)
    _write(folder / PASSWORD, password)
    _write(folder / DSN, f"postgresql://berth:{password}@postgres:5432/berth")
    return True


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
