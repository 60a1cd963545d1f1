"""Kafka and Postgres that run elsewhere: their addresses, and files with the secrets.

No secret is in an argument or an environment: passwords of Kafka's users are files of a folder,
that of Postgres is in the file of its address, or in one that the address names as `passfile`.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlencode, urlsplit

from infra.postgres.server import SERVICES
from infra.security import kafka_users, rights
from shared.http.server_settings import is_loopback
from shared.process.connection import BadConnection, Connection

SERVERS = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}(,[A-Za-z0-9.-]+:[0-9]{1,5})*")
KAFKA_CA, KAFKA_SECRETS = "BERTH_KAFKA_CA", "BERTH_KAFKA_SECRETS"
SCHEMES = ("postgresql", "postgres")
VERIFIED = "sslmode=verify-full&sslrootcert=FILE"


class BadExternal(ValueError):
    """An address, or a file that belongs to it, cannot be used; quotes no secret."""


@dataclass(frozen=True, slots=True)
class ExternalKafka:
    """Bootstrap servers, the CA of their certificates, and the folder of the users' passwords."""

    servers: str
    ca: Path
    secrets: Path


@dataclass(frozen=True, slots=True)
class ExternalPostgres:
    """The address of the installation's own account, and its password if the address has none."""

    address: str
    password: str = ""

    @property
    def user(self) -> str:
        return unquote(urlsplit(self.address).username or "")

    def owner(self, folder: Path) -> str:
        """Return the address; a password that came with it is in a file of `folder`."""
        return role_address(self.address, self.user, folder) if self.password else self.address

    def store(self, folder: Path) -> None:
        """Write the password of the account, and make those of the services' roles once."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.password:
            _store(folder / quote(self.user, safe=""), self.user, self.password)
        for role in SERVICES:
            if not (folder / role).exists():
                _store(folder / role, role, secrets.token_urlsafe(32))


def read_kafka(servers: str, environ: Mapping[str, str]) -> ExternalKafka:
    """Return the Kafka of `--broker HOST:PORT,...`. Raises BadExternal, NoPassword."""
    if not SERVERS.fullmatch(servers):
        raise BadExternal(
            f"invalid --broker: {servers!r}; must be embedded, kafka or HOST:PORT,..."
        )
    ca, folder = (_named(servers, environ, name) for name in (KAFKA_CA, KAFKA_SECRETS))
    for user in rights.users():
        password = kafka_users.password(folder, user)
    try:
        Connection(servers, user=user, password=password, ca=ca).tls()
    except BadConnection as error:
        raise BadExternal(f"{KAFKA_CA}={error}") from None
    return ExternalKafka(servers, ca.resolve(), folder.resolve())


def _named(servers: str, environ: Mapping[str, str], name: str) -> Path:
    if not environ.get(name):
        raise BadExternal(
            f"--broker {servers}: {name} is not set; an external Kafka needs {KAFKA_CA} (its CA, "
            f"PEM) and {KAFKA_SECRETS} (folder of kafka_<user> files, a password each)"
        )
    return Path(environ[name])


def read_postgres(text: str) -> ExternalPostgres:
    """Return the Postgres of `--postgres`: an address without a password, or a file with one.

    Raises BadExternal, also where rows would cross the network unprotected.
    """
    is_address = text.split("://", 1)[0] in SCHEMES
    address = text if is_address else _read_file(text)
    parts = _parse(address, text if not is_address else "the address")
    if is_address and parts.password is not None:
        raise BadExternal(
            "--postgres: a password in an argument is visible to every user of this machine; "
            "write the address to a file of mode 0600 and name the file"
        )
    query = parse_qs(parts.query)
    if parts.password is None and "passfile" not in query:
        raise BadExternal("--postgres: no password; must be in the file, or in ?passfile=FILE")
    host = query.get("host", [parts.hostname or ""])[-1]
    is_local = host.startswith("/") or is_loopback(host)
    if not is_local and query.get("sslmode") != ["verify-full"]:
        raise BadExternal(
            f"--postgres: rows would cross the network to {host} without a verified "
            f"certificate; add ?{VERIFIED} to the address"
        )
    bare = parts._replace(netloc=_without_password(parts)).geturl()
    return ExternalPostgres(bare, unquote(parts.password or ""))


def _read_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise BadExternal(
            f"--postgres {name}: {reason}; must be a file, or postgresql://USER@HOST:PORT/DATABASE"
        ) from None


def _parse(address: str, name: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        is_whole = parts.port is None or parts.port > 0
    except ValueError:
        is_whole = False
    if not is_whole or parts.scheme not in SCHEMES or not parts.username or len(parts.path) < 2:
        raise BadExternal(
            f"--postgres: {name} is no address; must be postgresql://USER@HOST:PORT/DATABASE"
        )
    return parts


def _without_password(parts: SplitResult) -> str:
    user, _, host = parts.netloc.rpartition("@")
    return f"{user.partition(':')[0]}@{host}"


def role_address(address: str, user: str, folder: Path) -> str:
    """Return the address for another user, whose password is in a file of `folder`."""
    parts = urlsplit(address)
    name = quote(user, safe="")
    named = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    named["passfile"] = str(folder / name)
    host = parts.netloc.rpartition("@")[2]
    query = urlencode(named, safe="/")
    return parts._replace(netloc=f"{name}@{host}", query=query).geturl()


def _store(path: Path, user: str, password: str) -> None:
    """Write a password file as libpq reads it, for its owner alone."""
    user, password = (re.sub(r"([\\:])", r"\\\1", text) for text in (user, password))
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(f"*:*:*:{user}:{password}\n")
