"""An incarnation of a node: it ends at a reboot, with its lease, with its state, or when fenced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from berth_agent.messages import Incarnation


@dataclass(frozen=True, slots=True)
class Machine:
    """Identity of the running machine."""

    boot_id: str
    pid_namespace: str
    hardware: str
    """Hash of the identity of the board, else of the GPUs; empty where there is none."""
    former_hardware: tuple[str, ...] = ()
    """Hashes by which earlier versions named it, or without a board that can be read."""
    network_namespace: str = ""


@dataclass(frozen=True, slots=True)
class BootIncarnation:
    """An incarnation and the boot that it belongs to."""

    incarnation: Incarnation
    boot_id: str
    pid_namespace: str
    installation: str = ""
    """Mark of the installation that it registers with; that of another join counts from the next
    incarnation on, as the ledger has this one's."""

    @property
    def proof(self) -> str:
        """Shared by two incarnations if the later has ended what the earlier ran: an agent kills
        the processes of its pid namespace that have its own mark.
        """
        mark = f"/{self.installation}" if self.installation else ""
        return f"{self.pid_namespace}{mark}"

    def to_json(self) -> dict[str, Any]:
        return {
            "incarnation": self.incarnation.to_json(),
            "boot_id": self.boot_id,
            "pid_namespace": self.pid_namespace,
            "installation": self.installation,
        }


def read_incarnation(document: dict[str, Any]) -> BootIncarnation:
    """Read the file of the incarnation. Raises MalformedMessage, KeyError."""
    incarnation = Incarnation.from_json(document["incarnation"])
    boot_id, pid_namespace = str(document["boot_id"]), str(document["pid_namespace"])
    return BootIncarnation(incarnation, boot_id, pid_namespace, document.get("installation", ""))


def goes_on(held: BootIncarnation, machine: Machine) -> bool:
    """Return whether the incarnation is of this boot: an agent that restarts keeps it."""
    present = (machine.boot_id, machine.pid_namespace)
    return (held.boot_id, held.pid_namespace) == present


def next_incarnation(
    held: BootIncarnation | None,
    last_generation: int,
    uuid: str,
    machine: Machine,
    installation: str = "",
) -> BootIncarnation:
    """Return a new incarnation, of a higher generation than any that is known."""
    own = 0 if held is None else held.incarnation.generation
    generation = max(own, last_generation) + 1
    incarnation = Incarnation(generation=generation, uuid=uuid)
    return BootIncarnation(incarnation, machine.boot_id, machine.pid_namespace, installation)


def may_register(held: BootIncarnation, last_generation: int) -> bool:
    """Return whether placement would take a registration: its generation must be higher."""
    return held.incarnation.generation > last_generation
