"""The GPU health of the node, and the file from which the next agent of this boot goes on.

The file is in the run folder. It is replaced by rename where what it holds has changed, so an agent
that was killed at any point leaves the old or the new one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from berth_agent import file_names
from berth_agent.core.gpu_health import GpuHealth
from berth_agent.linux import files
from berth_agent.messages import GpuReading
from berth_agent.node.config import Config
from berth_agent.node.system.inventory import Inventory

log = logging.getLogger(__name__)


class GpuMemory:
    """Owns `health`, which heartbeats carry; `note` is called in the thread that measures."""

    def __init__(self, config: Config, boot_id: str, inventory: Inventory) -> None:
        """Take up what an agent of this boot has left; a damaged file is as good as none."""
        self._inventory = inventory
        self.health = GpuHealth(config.gpus, config.gpu_type, config.unusable_gpus)
        self._path = f"{config.run}/{file_names.GPUS}"
        self._boot_id = boot_id
        self._written: object = self.health.memory()
        self._is_failing = False
        document = _read(self._path)
        if isinstance(document, dict) and document.get("boot_id") == boot_id:
            self.health.take_up(document.get("gpus"))
            self._written = self.health.memory()

    def note(self, readings: Sequence[GpuReading]) -> tuple[GpuReading, ...]:
        """Note a reading of all GPUs; return it with the errors that earlier agents have seen."""
        self.health.registered = self._inventory.instances
        self._inventory.note(readings)
        remembered = self.health.note(readings)
        memory = self.health.memory()
        if memory != self._written:
            self._write(memory)
        return remembered

    def _write(self, memory: object) -> None:
        """Write the file; where that fails the next reading tries again."""
        try:
            files.replace_json(self._path, {"boot_id": self._boot_id, "gpus": memory})
        except OSError as error:
            if not self._is_failing:
                log.warning("the health of the GPUs would not outlast this agent: %s", error)
            self._is_failing = True
            return
        self._written, self._is_failing = memory, False


def _read(path: str) -> object:
    try:
        return files.read_json(path)
    except (OSError, ValueError):
        return None
