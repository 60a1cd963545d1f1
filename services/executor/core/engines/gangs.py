"""The gangs of a pool, and the name by which work of Berth is known in an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from services.executor.core.agents.state import AgentPool, AgentWorker
from shared.contracts.agents import Launch

MARK = "berth"


class Identity(NamedTuple):
    """Names one placement of one job in one installation, in no other way than the ledger does."""

    installation: str
    pool: str
    place: str
    """`partition/seq/index` of its JobPlaced."""

    @property
    def text(self) -> str:
        return ":".join((MARK, *self))

    def is_of(self, installation: str, pool: str) -> bool:
        return (self.installation, self.pool) == (installation, pool)

    @classmethod
    def parse(cls, text: str) -> Identity | None:
        """Return what a comment of Berth says, None for another comment."""
        parts = text.split(":")
        if len(parts) != len(cls._fields) + 1 or parts[0] != MARK:
            return None
        return cls(*parts[1:])


@dataclass(frozen=True, slots=True)
class EngineGang:
    """The workers of one placement that are not released, by rank."""

    identity: str
    workers: tuple[AgentWorker, ...]

    @property
    def launch(self) -> Launch:
        """Return the launch of its lowest rank; what all workers share is the same in each."""
        return self.workers[0].launch

    @property
    def is_whole(self) -> bool:
        return len(self.workers) == self.launch.world_size

    @property
    def is_started(self) -> bool:
        return all(worker.started is not None for worker in self.workers)

    @property
    def started_ms(self) -> int:
        """Time of its start, by the ledger."""
        return max(worker.started_ms for worker in self.workers)

    @property
    def is_stopped(self) -> bool:
        return any(worker.stopped is not None for worker in self.workers)

    @property
    def pods(self) -> tuple[str, ...]:
        """Return the UIDs of the pods that are its workers already, none where Berth makes them."""
        return tuple(worker.pod for worker in self.workers if worker.pod)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return its nodes in the order of their lowest rank."""
        return tuple(dict.fromkeys(worker.node_id for worker in self.workers))

    @property
    def master_port(self) -> int | None:
        return self.workers[0].master_port


def place_of(allocation_id: str) -> str:
    """Return the place of the placement of an allocation, which is its id without the rank."""
    return allocation_id.rpartition("/")[0]


def gangs_of(state: AgentPool, installation: str, pool: str) -> dict[str, EngineGang]:
    """Return the gangs of which a worker is not released, by identity."""
    by_place: dict[str, list[AgentWorker]] = {}
    for worker in state.workers.values():
        by_place.setdefault(place_of(worker.allocation_id), []).append(worker)
    gangs = {}
    for place, workers in by_place.items():
        identity = Identity(installation, pool, place).text
        workers.sort(key=lambda worker: worker.launch.rank)
        gangs[identity] = EngineGang(identity, tuple(workers))
    return gangs
