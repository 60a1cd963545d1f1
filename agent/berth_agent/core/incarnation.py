"""One life of a node: it ends at a reboot, with its lease, with its state, or when fenced."""

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
    """Hash of the identities of board and GPUs; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Life:
    """An incarnation and the boot that it belongs to."""

    incarnation: Incarnation
    boot_id: str
    pid_namespace: str

    def to_json(self) -> dict[str, Any]:
        return {
            "incarnation": self.incarnation.to_json(),
            "boot_id": self.boot_id,
            "pid_namespace": self.pid_namespace,
        }


def read_life(document: dict[str, Any]) -> Life:
    """Read the file of the incarnation. Raises MalformedMessage, KeyError."""
    incarnation = Incarnation.from_json(document["incarnation"])
    return Life(incarnation, str(document["boot_id"]), str(document["pid_namespace"]))


def goes_on(life: Life, machine: Machine) -> bool:
    """Whether the incarnation is of this boot: an agent that restarts keeps it."""
    present = (machine.boot_id, machine.pid_namespace)
    return (life.boot_id, life.pid_namespace) == present


def next_life(life: Life | None, last_generation: int, uuid: str, machine: Machine) -> Life:
    """Return a new incarnation, of a higher generation than any that is known."""
    own = 0 if life is None else life.incarnation.generation
    generation = max(own, last_generation) + 1
    incarnation = Incarnation(generation=generation, uuid=uuid)
    return Life(incarnation, machine.boot_id, machine.pid_namespace)


def may_register(life: Life, last_generation: int) -> bool:
    """Whether placement would take a registration: its generation must be higher."""
    return life.incarnation.generation > last_generation
