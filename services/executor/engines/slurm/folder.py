"""The folder of one gang, on a file system that the nodes and the executor share."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.noted import folder_name
from services.executor.core.slurm.scripts import (
    BATCH,
    ENVIRONMENT,
    GO,
    HOSTS,
    READY,
    WORKER,
    batch_script,
    environment_script,
    hosts,
    worker_script,
)
from services.executor.engines.noted_folder import NOTE_BYTES, NotedFolder
from services.executor.engines.tenant_files import read_file, replace_file


class GangFolder(NotedFolder):
    """Files by which the executor and the processes of a gang talk."""

    def __init__(self, root: Path, identity: str) -> None:
        super().__init__(root / folder_name(identity))

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

    def ready(self) -> str:
        return read_file(self.path / READY, NOTE_BYTES).decode(errors="replace").strip()
