"""Creates the secrets of docker-compose.yml as files below a closed directory."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from infra.security import certificates, kafka_users, rights
from shared.secrets.secret_keys import make_keys

PASSWORD, DSN, GRAFANA = "postgres_password", "postgres_dsn", "grafana_password"
INTERACTIONS = "interaction_key"
"""Key that signs ids of interactions: each throttle of an installation needs the same one."""
SECRET_KEYS = "secret_keys"
"""Keys that encrypt tenants' secrets, for the gateway, the executor of agents and the notifier."""
SMTP = "smtp_password"
"""Password at the SMTP server, which an operator writes; empty for none."""
ROLES = ("projector", "gateway", "notifier")
"""Services with a role, and so an address, of their own in Postgres."""
CERTIFICATES = "certificates"
UPSTREAMS = "upstreams"
"""Folder of the API keys of LLM upstreams, which an operator fills."""
ARCHIVE = "archive"
"""Folder of the credentials and the CA of an archive in S3, which an operator fills."""
INSIDE_CA = "/run/secrets/ca_crt"
"""Path of the certificate authority inside a container."""
READABLE = 0o444
"""Mode of the files: the directory is closed, and containers read as another user."""


def make(folder: Path) -> None:
    """Write missing secrets and renew certificates; existing passwords are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    certificates.make(folder / CERTIFICATES, certificates.CertificateOptions(key_mode=READABLE))
    for name in (UPSTREAMS, ARCHIVE):
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(0o755)
    kafka_users.make(folder, rights.users(), READABLE)
    for name in (PASSWORD, GRAFANA, INTERACTIONS):
        if not (folder / name).exists():
            _write(folder / name, secrets.token_urlsafe(32))
    if not (folder / SMTP).exists():
        _write(folder / SMTP, "\n")
    make_keys(folder / SECRET_KEYS, READABLE)
    _address(folder / DSN, "berth", (folder / PASSWORD).read_text())
    for role in ROLES:
        _address(folder / f"{DSN}_{role}", f"berth_{role}", secrets.token_urlsafe(32))


def outside(dsn: str, port: int, ca: Path) -> str:
    """Return the database address for a program on this machine."""
    return dsn.replace("@postgres:5432/", f"@127.0.0.1:{port}/").replace(INSIDE_CA, str(ca))


def forget(folder: Path) -> None:
    """Remove what `make` created; other files stay."""
    names = [
        PASSWORD,
        GRAFANA,
        INTERACTIONS,
        SECRET_KEYS,
        SMTP,
        DSN,
        *(f"{DSN}_{role}" for role in ROLES),
    ]
    paths = [folder / name for name in names]
    paths += [kafka_users.path_of(folder, user) for user in rights.users()]
    for path in (*paths, *(folder / CERTIFICATES).glob("*")):
        path.unlink(missing_ok=True)


def _address(path: Path, user: str, password: str) -> None:
    """Write a database address; an existing password is kept."""
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
    """Run `python -m infra.compose.secrets FOLDER`."""
    parser = argparse.ArgumentParser(prog="python -m infra.compose.secrets", description=__doc__)
    parser.add_argument("folder", type=Path)
    make(parser.parse_args().folder)


if __name__ == "__main__":
    main()
