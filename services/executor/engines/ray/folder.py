"""The folder of one gang of Ray, on a file system that the nodes and the executor share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from services.executor.core.engines.noted import BEGUN, DECIDED
from services.executor.core.ray.submission import LONGEST_S, WRAPPER
from services.executor.engines.noted_folder import NotedFolder
from services.executor.engines.ray import worker
from services.executor.engines.tenant_files import read_file, replace_file

RANK_FILE = re.compile(r"rank-([0-9]{1,5})\.[a-z]+")
INPUTS_BYTES = 4 * 2**20


class RayFolder(NotedFolder):
    """Files by which the executor and the wrappers of a gang talk; `ref` is its name in Ray."""

    def __init__(self, root: Path, ref: str) -> None:
        super().__init__(root / ref)
        self._ref = ref

    def write(self, inputs: Mapping[int, Mapping[str, Any]]) -> None:
        """Write the wrapper, and what it reads for each rank.

        The longest time without Ray that was ever written stays: a wrapper reads it once.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self.path / WRAPPER, Path(worker.__file__).read_text(encoding="utf-8"))
        earlier_s = self.stop_after_s()
        for rank, values in inputs.items():
            stop_after_s = max(earlier_s, values["stop_after_s"])
            text = json.dumps({**values, "stop_after_s": stop_after_s})
            replace_file(self.path / f"rank-{rank}.json", text)

    def stop_after_s(self) -> float:
        """Return the longest time without Ray after which a wrapper ends itself, 0 for none, s."""
        ranks = self.ranks()
        return max((_stop_after_s(self.path / f"rank-{rank}.json") for rank in ranks), default=0.0)

    def ranks(self) -> list[int]:
        """Return the ranks that were written."""
        return self._of_ranks("json")

    def ready(self) -> str:
        ranks = self.ranks()
        is_ready = len(ranks) > 0 and set(ranks) <= set(self._of_ranks("ready"))
        return self._ref if is_ready else ""

    def _of_ranks(self, kind: str) -> list[int]:
        names = (RANK_FILE.fullmatch(path.name) for path in self.path.glob(f"rank-*.{kind}"))
        return sorted(int(name[1]) for name in names if name)

    def start(self, port: int | None) -> None:
        """Let the program begin; without effect where it is forbidden."""
        replace_file(self.path / worker.PORT, f"{port or 0}\n")
        with suppress(FileExistsError):
            (self.path / DECIDED).symlink_to(BEGUN + self._ref)

    def signal(self, *names: str) -> None:
        """Have the wrappers send signals: `worker.TERM`, `worker.KILL`."""
        for name in names:
            with suppress(FileNotFoundError):
                (self.path / name).touch()


def _stop_after_s(path: Path) -> float:
    """Return what a wrapper read there; the longest that is allowed where it was overwritten."""
    try:
        return min(float(json.loads(read_file(path, INPUTS_BYTES))["stop_after_s"]), LONGEST_S)
    except (LookupError, TypeError, ValueError):
        return LONGEST_S
