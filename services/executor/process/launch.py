"""Prepares and starts one worker's program."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from services.executor.core.effects import WorkerSpec
from services.executor.process.environment import LaunchRefused, environment, secret_reader

OUTPUT = "output.log"
CANNOT_RUN = 126
NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """How this host runs workers."""

    work: Path
    path: str = "/usr/local/bin:/usr/bin:/bin"
    secrets: Path | None = None
    uid_first: int = 0
    uid_count: int = 1000

    @property
    def own_uids(self) -> bool:
        """Whether each worker has a uid of its own, which needs root."""
        return self.uid_first > 0 and os.geteuid() == 0


@dataclass(frozen=True, slots=True)
class Launch:
    """A prepared worker, whose program can be started at once."""

    spec: WorkerSpec
    home: Path
    program: str
    environment: dict[str, str]
    token: str
    uid: int | None

    def close_home(self) -> None:
        """Hide the directory from the next worker with this uid."""
        if self.uid is not None:
            os.chown(self.home, 0, 0)


def prepare(place: LaunchSettings, spec: WorkerSpec, token: str, uid: int | None) -> Launch:
    """Make the directory and check the spec. Raises LaunchRefused."""
    if not spec.job_spec.command:
        raise LaunchRefused("no_command: the process backend runs a command, not an image")
    if place.own_uids and uid is None:
        raise LaunchRefused(f"no_uid: all {place.uid_count} are in use")
    home = place.work / f"{spec.job_id}.{spec.attempt}.{spec.rank}"
    secret = secret_reader(place.secrets, spec.tenant)
    values = environment(spec, home, place.path, token, secret)
    program = _program(spec.job_spec.command[0], place.path)
    _make(home, uid)
    return Launch(spec, home, program, values, token, uid)


def start(launch: Launch) -> tuple[subprocess.Popen[bytes], BinaryIO]:
    """Start the program in a session of its own, with no descriptor of this process.

    Returns the process and a reader of its output. Raises OSError.
    """
    path = launch.home / OUTPUT
    flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    output = os.open(path, flags | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        if launch.uid is not None:
            os.fchown(output, launch.uid, launch.uid)
        reader = path.open("rb")
        try:
            return _spawn(launch, output), reader
        except OSError:
            reader.close()
            raise
    finally:
        os.close(output)


def code_of(error: OSError) -> int:
    """Return the exit code of shells for a program that could not be started."""
    return NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN


def unreachable(folder: Path) -> Path | None:
    """Return the first folder on the path that a worker with a uid of its own cannot enter."""
    path = [*reversed(folder.resolve().parents), folder.resolve()]
    closed = (step for step in path if step.exists() and not step.stat().st_mode & stat.S_IXOTH)
    return next(closed, None)


def _spawn(launch: Launch, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        launch.spec.job_spec.command,
        executable=launch.program,
        cwd=launch.home,
        env=launch.environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        umask=0o077,
        user=launch.uid,
        group=launch.uid,
        extra_groups=None if launch.uid is None else [],
    )


def _program(command: str, path: str) -> str:
    """Find the program; a relative path is missing, as a worker's directory is empty."""
    relative = "/" in command and not command.startswith("/")
    program = None if relative else shutil.which(command, path=path)
    if program is None:
        raise LaunchRefused(f"command_missing: {command[:256]}")
    return program


def _make(home: Path, uid: int | None) -> None:
    """Make an empty directory; an old one is of a worker that was never started, or reaped."""
    try:
        if home.exists():
            shutil.rmtree(home)
        home.mkdir(parents=True, mode=0o700)
        if uid is not None:
            os.chown(home, uid, uid)
    except OSError as error:
        raise LaunchRefused(f"no_directory: {error.strerror}") from None
