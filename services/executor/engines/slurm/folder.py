"""The folder of one gang, on a file system that the nodes and the executor share."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path

from services.executor.core.engines.contract import GangProgress, RankEnd
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.slurm.scripts import (
    BATCH,
    BEGUN,
    DECIDED,
    END_FIELDS,
    ENVIRONMENT,
    FORBIDDEN,
    GO,
    HOSTS,
    READY,
    WORKER,
    batch_script,
    environment_script,
    hosts,
    output_name,
    worker_script,
)

CHUNK_BYTES = 256 * 1024
TAIL_BYTES, TAIL_LINES, TAIL_CHARS = 8192, 20, 512


class GangFolder:
    """Files by which the executor and the processes of a gang talk."""

    def __init__(self, root: Path, identity: str) -> None:
        self.path = root / identity.replace("/", "-").replace(":", "+")

    def write_scripts(self, gang: EngineGang, commands: str, user: str) -> Path:
        """Write what the gang runs, for its user alone; return the batch script."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        texts = {
            ENVIRONMENT: environment_script(gang),
            WORKER: worker_script(gang, str(self.path)),
            HOSTS: hosts(gang),
            BATCH: batch_script(gang, str(self.path), commands),
        }
        for name, text in texts.items():
            _replace(self.path / name, text)
        if user:
            account = pwd.getpwnam(user)
            for path in (self.path, *self.path.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
        return self.path / BATCH

    def start(self, ref: str, port: int | None) -> None:
        """Let the program begin in that job of Slurm; only the first job that is named decides."""
        _replace(self.path / GO, f"{ref} {port or 0}\n", mode=0o644)

    def forbid(self) -> None:
        """Let no program ever begin; without effect where one has."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (self.path / DECIDED).symlink_to(FORBIDDEN)
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def progress(self) -> GangProgress:
        """Return what the processes of the gang noted so far."""
        decided = ""
        with suppress(OSError):
            decided = os.readlink(self.path / DECIDED)
        ends = {}
        with suppress(OSError):
            for path in self.path.glob("rank-*.end"):
                rank = int(path.stem.removeprefix("rank-"))
                ends[rank] = self._end(rank, path.read_text())
        return GangProgress(
            ready=_text(self.path / READY),
            is_begun=decided.startswith(BEGUN),
            is_forbidden=decided == FORBIDDEN,
            ends=ends,
        )

    def _end(self, rank: int, text: str) -> RankEnd:
        code, ran_ms, ended_ms, reason = (*text.split(), "")[:END_FIELDS]
        return RankEnd(int(code), int(ran_ms), int(ended_ms), reason, "", self._tail(rank))

    def _tail(self, rank: int) -> tuple[str, ...]:
        """Return the last lines of a worker."""
        try:
            with (self.path / output_name(rank)).open("rb") as output:
                output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL_BYTES))
                lines = output.read().decode(errors="replace").splitlines()
        except OSError:
            return ()
        return tuple(line[:TAIL_CHARS] for line in lines[-TAIL_LINES:])

    def output(self, rank: int, offset: int) -> bytes:
        try:
            with (self.path / output_name(rank)).open("rb") as output:
                output.seek(offset)
                return output.read(CHUNK_BYTES)
        except OSError:
            return b""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _replace(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file as a whole: a reader sees the old one or the new one."""
    new = path.with_name(path.name + ".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
