"""Makes the secrets of docker-compose.yml once, as files that only this user can reach."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from infra.security import acls, certificates, kafka_users

PASSWORD, DSN, GRAFANA = "postgres_password", "postgres_dsn", "grafana_password"
ROLES = ("projector", "gateway")
"""Services that have a role of their own in Postgres, and so an address of their own."""
CERTIFICATES = "certificates"
INSIDE_CA = "/run/secrets/ca_crt"
"""Where a container finds the CA that it trusts."""
READABLE = 0o444
"""The folder is closed; inside a container the reader is another user, so the files are not."""


def make(folder: Path) -> None:
    """Write what is missing, renew certificates; passwords stay, for their servers know them."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    certificates.make(folder / CERTIFICATES, certificates.Wish(key_mode=READABLE))
    kafka_users.make(folder, acls.users(), READABLE)
    for name in (PASSWORD, GRAFANA):
        if not (folder / name).exists():
            _write(folder / name, secrets.token_urlsafe(32))
    _address(folder / DSN, "berth", (folder / PASSWORD).read_text())
    for role in ROLES:
        _address(folder / f"{DSN}_{role}", f"berth_{role}", secrets.token_urlsafe(32))


def outside(dsn: str, port: int, ca: Path) -> str:
    """The same address as a program on this machine reaches it."""
    return dsn.replace("@postgres:5432/", f"@127.0.0.1:{port}/").replace(INSIDE_CA, str(ca))


def forget(folder: Path) -> None:
    """Everything that `make` made; what else lies there stays."""
    names = [PASSWORD, GRAFANA, DSN, *(f"{DSN}_{role}" for role in ROLES)]
    paths = [folder / name for name in names]
    paths += [kafka_users.path_of(folder, user) for user in acls.users()]
    for path in (*paths, *(folder / CERTIFICATES).glob("*")):
        path.unlink(missing_ok=True)


def _address(path: Path, user: str, password: str) -> None:
    """One that is there keeps its password; one of before TLS is written anew with it."""
    old = path.read_text().strip() if path.exists() else ""
    if "sslmode=" in old:
        return
    path.unlink(missing_ok=True)
    kept = urlsplit(old).password or password
    tls = f"sslmode=verify-full&sslrootcert={INSIDE_CA}"
    _write(path, f"postgresql://{user}:{kept}@postgres:5432/berth?{tls}")


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, READABLE)
    with os.fdopen(descriptor, "w") as out:
        out.write(text)


def main() -> None:
    """`python -m infra.compose.secrets FOLDER`"""
    parser = argparse.ArgumentParser(prog="python -m infra.compose.secrets", description=__doc__)
    parser.add_argument("folder", type=Path)
    make(parser.parse_args().folder)


if __name__ == "__main__":
    main()
