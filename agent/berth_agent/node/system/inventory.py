"""The GPUs that this node offers: whole ones by number, or MIG instances of a profile by UUID.

The instances of an incarnation are those that it has registered, also over a restart of the agent:
a number in the ledger means one instance until the node registers anew. An instance that is taken
away meanwhile leaves its number unused, and one that is made meanwhile has none.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from berth_agent import file_names
from berth_agent.core.gpu_inventory import (
    NONE,
    MigInstance,
    gone_instances,
    instances_of,
    lack_of_instances,
    profile_of,
    renumbered,
)
from berth_agent.linux import files
from berth_agent.linux.nvml import Nvml
from berth_agent.messages import GpuReading
from berth_agent.node.config import Config, ConfigError
from berth_agent.node.system import machine
from berth_agent.step.checks import StartRefused

log = logging.getLogger(__name__)


class Inventory:
    """Fixed when an incarnation registers; `note` is called in the thread that measures."""

    def __init__(self, config: Config, nvml: Nvml | None = None) -> None:
        self._config = config
        self._profile = profile_of(config.gpu_type)
        self._path = f"{config.run}/{file_names.INSTANCES}"
        self._gone: frozenset[int] = frozenset()
        self.instances: tuple[MigInstance, ...] = ()
        """By number; empty on a node of whole GPUs."""
        self.nvml = (nvml or Nvml()) if self._profile else None
        """The driver's library where it was opened here: it hands each error out once."""

    @property
    def count(self) -> int:
        """Return the GPUs that the node registers, in devices."""
        if self._profile and self._config.gpus < 0:
            return len(self.instances)
        return machine.gpu_count(self._config)

    @property
    def unusable(self) -> frozenset[int]:
        """Return the numbers that are not offered, by the settings, or as there is no instance."""
        none = [number for number, one in enumerate(self.instances) if one == NONE]
        missing = range(len(self.instances), self.count) if self._profile else ()
        return frozenset((*self._config.unusable_gpus, *none, *missing))

    def take_up(self, incarnation: str) -> None:
        """Go on with what this incarnation has registered.

        Raises ConfigError where it has registered nothing, and there is nothing to register: MIG
        instances do not outlast a boot, and may be made after the start of the agent.
        """
        if not self.nvml:
            return
        self.instances = self._read().get(incarnation, ())
        if self.instances or self._config.gpus == 0:
            return
        readings = self.nvml.readings()
        if not instances_of(self._profile, readings):
            lack = lack_of_instances(self._config.gpu_type, readings)
            raise ConfigError(f"{lack}; make them (`nvidia-smi mig`), then start the agent")

    def register(self, incarnation: str) -> None:
        """Fix the instances of an incarnation before the ledger learns of them. Raises OSError."""
        if not self.nvml:
            return
        known = self._read()
        if present := known.get(incarnation):
            self.instances = present
            return
        before = next(iter(known.values()), ())
        numbered = renumbered(before, instances_of(self._profile, self.nvml.readings()))
        self.instances = numbered if self._config.gpus < 0 else numbered[: self._config.gpus]
        self._gone = frozenset()
        entries = [list(instance) for instance in self.instances]
        files.replace_json(self._path, {"incarnation": incarnation, "instances": entries})
        log.info("offered as GPUs: %s", ", ".join(one.uuid for one in self.instances) or "none")

    def note(self, readings: Sequence[GpuReading]) -> None:
        """Note a reading of all GPUs; without any nothing is known."""
        if readings:
            self._gone = frozenset(gone_instances(self.instances, readings))

    def lacking(self, gpus: Sequence[int]) -> str:
        """Return what the machine lacks of these GPUs, empty where it has all of them.

        An agent may be restarted with other GPUs than it has registered, and an operator may take
        instances of MIG away.
        """
        count, unusable = self.count, self.unusable | self._gone
        lacking = [gpu for gpu in gpus if gpu >= count or gpu in unusable]
        return f"GPUs {lacking}: not usable; the machine has {count}" if lacking else ""

    def devices(self, gpus: Sequence[int]) -> tuple[str, ...]:
        """Return the names by which CUDA and the engine of containers know GPUs.

        Raises StartRefused.
        """
        if not self._profile:
            return tuple(map(str, gpus))
        known = dict(enumerate(self.instances))
        if unknown := [gpu for gpu in gpus if known.get(gpu, NONE) == NONE]:
            detail = f"GPUs {unknown}: no instance of {self._profile} has this number"
            raise StartRefused("no_such_gpu", detail, False)
        return tuple(known[gpu].uuid for gpu in gpus)

    def _read(self) -> dict[str, tuple[MigInstance, ...]]:
        """Return what the last incarnation of this boot has registered, by its id.

        A damaged file is as good as none.
        """
        try:
            document = files.read_json(self._path) or {"incarnation": "", "instances": ()}
            instances = tuple(
                MigInstance(int(gpu), str(uuid), str(profile))
                for gpu, uuid, profile in document["instances"]
            )
            return {str(document["incarnation"]): instances}
        except (OSError, ValueError, TypeError, KeyError):
            return {}
