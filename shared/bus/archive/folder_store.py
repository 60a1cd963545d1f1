"""An archive in a folder, on a disk of its own or a network file system with hard links."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path

from shared.bus.archive.store import CONTENT, MARK
from shared.ledger.errors import ArchiveUnreachable
from shared.process.durable_files import sync

HALF = ".half"


class FolderStore:
    """Objects as files, made by `link`, which is atomic and fails if the name exists.

    The folder has a file `berth-archive`: without it the disk is not mounted, and an empty folder
    must not pass as an empty archive.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self) -> None:
        """Make the folder an archive. Raises ArchiveUnreachable if it holds anything else."""
        try:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
            is_empty = not any(self._root.iterdir())
            if is_empty:
                self._put(self._root / MARK, CONTENT)
        except OSError as error:
            raise self._unreachable(error) from None
        if not is_empty and not self._is_there():
            raise ArchiveUnreachable(f"{self._root}: not empty, and no archive of Berth")

    def check(self) -> None:
        """Raise ArchiveUnreachable if the folder is no archive, as when it is not mounted."""
        if not self._is_there():
            raise ArchiveUnreachable(f"{self._root}: no archive: it has no file {MARK}")

    def check_writable(self) -> None:
        self.check()
        try:
            with tempfile.NamedTemporaryFile(dir=self._root, suffix=HALF) as file:
                file.write(CONTENT)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unreachable(error) from None

    def free_ratio(self) -> float | None:
        try:
            disk = shutil.disk_usage(self._root)
        except OSError as error:
            raise self._unreachable(error) from None
        return disk.free / disk.total

    def put_new(self, name: str, body: bytes) -> bool:
        self.check()
        path = self._root / name
        try:
            self._make_folder(path.parent)
            return self._put(path, body)
        except OSError as error:
            raise self._unreachable(error) from None

    def get(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            self.check()
            return None
        except OSError as error:
            raise self._unreachable(error) from None

    def names(self, prefix: str) -> list[str]:
        try:
            names = sorted(os.listdir(self._root / prefix))
        except FileNotFoundError:
            self.check()
            return []
        except OSError as error:
            raise self._unreachable(error) from None
        return [name for name in names if not name.endswith(HALF)]

    def _is_there(self) -> bool:
        try:
            return (self._root / MARK).is_file()
        except OSError as error:
            raise self._unreachable(error) from None

    def _make_folder(self, folder: Path) -> None:
        """Make a folder below the root, durably."""
        if folder == self._root or folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)
        self._give(folder)
        sync(folder.parent)

    def _give(self, path: Path) -> None:
        """Give what root makes to the owner of the archive, whose services have to read it."""
        if os.geteuid() == 0:
            owner = self._root.stat()
            os.chown(path, owner.st_uid, owner.st_gid)

    def _put(self, path: Path, body: bytes) -> bool:
        half = path.with_name(f"{path.name}.{secrets.token_hex(6)}{HALF}")
        try:
            with half.open("xb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            self._give(half)
            os.link(half, path)
        except FileExistsError:
            return False
        finally:
            half.unlink(missing_ok=True)
        sync(path.parent)
        return True

    def _unreachable(self, error: OSError) -> ArchiveUnreachable:
        return ArchiveUnreachable(f"{error.filename or self._root}: {error.strerror}")
