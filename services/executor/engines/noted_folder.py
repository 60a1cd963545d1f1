"""Notes of the processes of a gang in a folder that the nodes and the executor share."""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from services.executor.core.engines.contract import GangProgress
from services.executor.core.engines.noted import BEGUN, DECIDED, FORBIDDEN, output_name, parse_end
from services.executor.core.engines.output_lines import TAIL_BYTES, last_lines
from services.executor.engines.engine import EngineAway, OutputUnreadable
from services.executor.engines.tenant_files import read_file, reading_problem, size_of

CHUNK_BYTES = 256 * 1024
NOTE_BYTES = 256
END_NAME = re.compile(r"rank-([0-9]{1,5})\.end")


@contextmanager
def reachable(root: Path) -> Iterator[None]:
    """Raise EngineAway where the folder of all gangs fails: nothing may be concluded from it."""
    try:
        yield
    except OSError as error:
        raise EngineAway(f"{root}: {error.strerror}") from None


def refuse_writers(root: Path, mask: int) -> None:
    """Raise EngineAway where a folder may be written by those of the mask, OSError if it fails.

    They could put a link in place of a folder that is written by root, or a note of their own.
    """
    if root.stat().st_mode & mask:
        raise EngineAway(f"{root}: others than its owner may write there")


class NotedFolder(ABC):
    """The folder of one gang; an engine adds how its processes stand ready."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def ready(self) -> str:
        """Return the ref of the job that stands ready, "" if none does."""

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
            ready=self.ready(),
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
        """Return output of a worker from that byte on. Raises OutputUnreadable."""
        path = self.path / output_name(rank)
        output = read_file(path, CHUNK_BYTES, offset)
        if not output and not offset and (problem := reading_problem(path)):
            raise OutputUnreadable(problem)
        return output
