"""Runs the commands of Slurm, each with a limit of time."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from services.executor.engines.engine import EngineAway

LIMIT_S = 20.0
AWAY = (
    "Unable to contact slurm controller",
    "Connection refused",
    "Connection timed out",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Slurm backup controller in standby mode",
    "Munge encode failed",
    "slurm_load",
    "Slurm temporarily unable to accept job",
)
"""Texts of errors after which it is unknown what Slurm did, or which pass by themselves."""


class CommandFailed(Exception):
    """Slurm refused a command; the text is what it said."""


class SlurmCommands:
    """`folder` holds the commands; None for those on PATH."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    async def run(self, name: str, *arguments: str) -> str:
        """Return what a command prints. Raises CommandFailed and EngineAway."""
        program = str(self.folder / name) if self.folder is not None else name
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            raise EngineAway(f"{program}: {error.strerror}") from None
        try:
            async with asyncio.timeout(LIMIT_S):
                printed, complaint = await process.communicate()
        except TimeoutError:
            raise EngineAway(f"{name}: no answer within {LIMIT_S:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode == 0:
            return printed.decode(errors="replace")
        text = complaint.decode(errors="replace").strip()
        if any(known in text for known in AWAY):
            raise EngineAway(f"{name}: {text}")
        raise CommandFailed(text or f"{name}: exit code {process.returncode}")

    async def read_json(self, name: str, *arguments: str) -> dict[str, Any]:
        """Return the object that a command prints. Raises EngineAway for anything else."""
        try:
            printed = await self.run(name, *arguments)
            answer = json.loads(printed)
        except (CommandFailed, ValueError) as error:
            raise EngineAway(f"{name}: {str(error)[:200]}") from None
        if not isinstance(answer, dict):
            raise EngineAway(f"{name}: {printed[:200]!r}; an object is expected")
        if errors := answer.get("errors"):
            raise EngineAway(f"{name}: {str(errors)[:200]}")
        return answer


def words_of(lines: Sequence[str]) -> str:
    """Return what Slurm said without the name of its command and the level."""
    texts = (line.rpartition("error: ")[2].strip() for line in lines)
    return "; ".join(dict.fromkeys(text for text in texts if text))
