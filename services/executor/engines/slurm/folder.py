"""The folder of one gang, on a file system that the nodes and the executor share."""

from __future__ import annotations

import errno
import os
import pwd
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from services.executor.core.engines.contract import GangProgress
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.output_lines import TAIL_BYTES, last_lines
from services.executor.core.slurm.scripts import (
    BATCH,
    BEGUN,
    DECIDED,
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
    parse_end,
    worker_script,
)
from services.executor.engines.slurm.tenant_files import read_file, replace_file, size_of

CHUNK_BYTES = 256 * 1024
NOTE_BYTES = 256
END_NAME = re.compile(r"rank-([0-9]{1,5})\.end")


class GangFolder:
    """Files by which the executor and the processes of a gang talk."""

    def __init__(self, root: Path, identity: str) -> None:
        self.path = root / identity.replace("/", "-").replace(":", "+")

    def write_scripts(self, gang: EngineGang, user: str) -> None:
        """Write what the gang runs, for its user alone. Raises KeyError for an unknown user."""
        account = pwd.getpwnam(user) if user else None
        owner = (account.pw_uid, account.pw_gid) if account else None
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        texts = {
            ENVIRONMENT: environment_script(gang),
            WORKER: worker_script(gang, str(self.path)),
            HOSTS: hosts(gang),
        }
        for name, text in texts.items():
            replace_file(self.path / name, text, owner=owner)
        if owner is not None:
            os.chown(self.path, *owner, follow_symlinks=False)

    def write_submission(self, gang: EngineGang, commands: str, private: Path) -> Path:
        """Write what `sbatch` reads to a folder that no tenant can open; return the script."""
        replace_file(private / HOSTS, hosts(gang))
        replace_file(private / BATCH, batch_script(gang, str(self.path), commands))
        return private / BATCH

    def start(self, ref: str, port: int | None) -> None:
        """Let the program begin in that job of Slurm; only the first job that is named decides."""
        # A folder of that name is made by the program of the gang itself, which has begun.
        with suppress(IsADirectoryError):
            replace_file(self.path / GO, f"{ref} {port or 0}\n", mode=0o644)

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
        decided = self._decided()
        ends = {}
        for path in self.path.glob("rank-*.end"):
            name = END_NAME.fullmatch(path.name)
            end = parse_end(read_file(path, NOTE_BYTES)) if name else None
            if name and end is not None:
                rank = int(name[1])
                ends[rank] = replace(end, output=self._tail(rank))
        return GangProgress(
            ready=read_file(self.path / READY, NOTE_BYTES).decode(errors="replace").strip(),
            is_begun=decided.startswith(BEGUN),
            is_forbidden=decided == FORBIDDEN,
            ends=ends,
        )

    def _decided(self) -> str:
        """Return the target of the link, "" if there is none.

        What is no link, or cannot be read, is the tenant's own: its program has begun.
        """
        try:
            return os.readlink(self.path / DECIDED)
        except FileNotFoundError:
            return ""
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EACCES):
                return BEGUN
            raise

    def _tail(self, rank: int) -> tuple[str, ...]:
        """Return the last lines of a worker."""
        path = self.path / output_name(rank)
        begin = max(0, size_of(path) - TAIL_BYTES)
        return last_lines(read_file(path, TAIL_BYTES, begin))

    def output(self, rank: int, offset: int) -> bytes:
        return read_file(self.path / output_name(rank), CHUNK_BYTES, offset)
