"""The real services as processes of one event loop, which can be killed, frozen and started again.

Only the broker, the wire and the host are simulated: lanes, deciders, executor and
publisher are the code that is deployed.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakSet

from services.executor.core.virtual.effects import WorkerEnded, WorkerOutcome, WorkerSpec
from services.executor.core.virtual.inventory import InventoryNode
from services.executor.settings import ExecutorSettings
from services.executor.virtual.backend import VirtualBackend
from services.executor.virtual.server import VirtualServer
from services.placement.app import decode_report
from services.placement.heartbeats import watch
from services.publisher.app import Publisher
from services.publisher.settings import PublisherSettings
from services.publisher.shipper import Shipment
from shared.bus.clock import WallClock
from shared.bus.folds.snapshots import Snapshots
from shared.bus.hosting.host import clock_of
from shared.bus.hosting.lanes import Lanes
from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.log import Feed, Headers
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.topics import INPUTS
from shared.ledger.decider import Decider
from shared.ledger.errors import OutcomeUnknown, TailLost
from shared.ledger.inputs import InputDecoder, commands_only
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics
from tests.chaos.virtual_time import AHEAD_S

LANE = 0
LIFE: ContextVar[Life] = ContextVar("life")


def make_task(loop: asyncio.AbstractEventLoop, work: Any, context: Any = None) -> Any:
    """Make a task that its process owns, so that none survives the process."""
    task = asyncio.Task(work, loop=loop, context=context)
    if life := LIFE.get(None):
        life.tasks.add(task)
    return task


SETTINGS = LaneSettings(window_ms=5, snapshot_every=8, snapshot_pause_s=0.0)


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities, per append, of the accidents of network and machine."""

    dies: float = 0.0
    """Before the record is sent, in flight, or after its acknowledgement."""
    freezes: float = 0.0
    """Right before the record is sent; others decide meanwhile."""
    accident: float = 0.0
    """Request or answer lost, late, doubled, or without a valid offset."""
    rereads: float = 0.0
    """Per poll of an input: records are delivered again, or left out."""

    @classmethod
    def none(cls) -> Faults:
        return cls()


@dataclass(eq=False)
class Life:
    """One run of one process, from its start to its death."""

    name: str
    world: World
    dead: bool = False
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: WeakSet[asyncio.Task[Any]] = field(default_factory=WeakSet)

    def __post_init__(self) -> None:
        self.awake.set()

    async def breathe(self) -> None:
        """Return when this process may go on: after a freeze late, after its death never."""
        await self.awake.wait()
        if self.dead:
            raise asyncio.CancelledError

    def kill(self, why: str) -> None:
        if not self.dead:
            self.dead = True
            self.world.deaths[self.name, why] += 1
            self.world.machine.lost(self)
            self.awake.set()
            self.ended.set()
            for task in list(self.tasks):
                if task is not asyncio.current_task():
                    task.cancel()

    def freeze(self, seconds: float) -> None:
        self.awake.clear()
        self.world.freezes += 1
        asyncio.get_running_loop().call_later(seconds, self.awake.set)


Shape = tuple[str, str, tuple[int, ...]]
"""Job, node and GPUs of a worker."""


class Machine:
    """The workers that really run on the GPUs."""

    def __init__(self) -> None:
        self._used: dict[str, tuple[Life, WorkerSpec]] = {}
        self.wrong: list[str] = []
        self.started: set[str] = set()
        self.ordered: dict[str, set[Shape]] = {}
        """Shapes that executors prepared, by allocation: one each, if they are correct."""

    def start(self, life: Life, spec: WorkerSpec) -> None:
        if life.dead:
            return
        for other, (_, running) in self._used.items():
            shared = set(running.gpus) & set(spec.gpus)
            crowded = running.gpu_milli + spec.gpu_milli > 1000
            if running.node_id == spec.node_id and shared and crowded:
                spot = f"{spec.node_id}/{sorted(shared)}"
                self.wrong.append(f"{spec.allocation_id} runs on {spot} beside {other}")
        if spec.allocation_id in self.started:
            self.wrong.append(f"{spec.allocation_id} was started a second time")
        self._used[spec.allocation_id] = life, spec
        self.started.add(spec.allocation_id)

    def end(self, life: Life, allocation_id: str) -> None:
        if not life.dead:
            self._used.pop(allocation_id, None)

    def lost(self, life: Life) -> None:
        self._used = {
            name: (owner, spec) for name, (owner, spec) in self._used.items() if owner is not life
        }


class WatchedBackend(VirtualBackend):
    """Reports its workers to the machine."""

    def __init__(self, report: Callable[[WorkerOutcome], None], *args: Any) -> None:
        self._life = LIFE.get()
        self._orders: dict[str, WorkerSpec] = {}
        self._report = report
        super().__init__(self._note, *args)

    def prepare(self, spec: WorkerSpec) -> None:
        self._orders[spec.allocation_id] = spec
        shape = spec.job_id, spec.node_id, spec.gpus
        self._life.world.machine.ordered.setdefault(spec.allocation_id, set()).add(shape)
        super().prepare(spec)

    def start(self, allocation_id: str) -> None:
        self._life.world.machine.start(self._life, self._orders[allocation_id])
        super().start(allocation_id)

    def _note(self, outcome: WorkerOutcome) -> None:
        if isinstance(outcome, WorkerEnded):
            self._life.world.machine.end(self._life, outcome.allocation_id)
        self._report(outcome)


class MortalLog(MemoryLog):
    """A client of the broker on a bad network, in a process that may die at every step."""

    def __init__(self, life: Life) -> None:
        super().__init__(life.world.broker)
        self.life = life
        self._chance = life.world.chance

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        faults, chance = self.life.world.faults, self._chance
        await self._step(faults.dies / 3, "before_send")
        if chance.random() < faults.freezes:
            self.life.freeze(chance.uniform(0.5, 8.0))
        await self.life.breathe()
        if chance.random() < faults.accident:
            return await self._accident(tp, value, key, headers)
        await asyncio.sleep(chance.uniform(0.0005, 0.004))
        offset = self.broker.append(tp, value, key, headers)
        await self._step(faults.dies / 3, "in_flight")
        await asyncio.sleep(chance.uniform(0.0005, 0.004))
        await self._step(faults.dies / 3, "after_ack")
        return offset

    async def _step(self, share: float, place: str) -> None:
        if self._chance.random() < share:
            self.life.kill(place)
        await self.life.breathe()

    async def _accident(self, tp: TP, value: bytes, key: bytes | None, headers: Headers) -> int:
        loop, chance = asyncio.get_running_loop(), self._chance
        kind = chance.choice(("lost_request", "lost_ack", "late", "duplicate", "no_offset"))
        self.life.world.accidents[kind] += 1
        if kind in ("lost_ack", "duplicate", "no_offset"):
            offset = self.broker.append(tp, value, key, headers)
        if kind in ("late", "duplicate"):
            late_s = chance.uniform(0.001, 2.0)
            loop.call_later(late_s, self.broker.append, tp, value, key, headers)
        await asyncio.sleep(chance.uniform(0.001, 0.5))
        await self.life.breathe()
        if kind == "duplicate":
            return offset
        if kind == "no_offset":
            return -1
        raise OutcomeUnknown(f"{tp.key}: {kind}")

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        await self.life.breathe()
        return MortalFeed(self.life, await super().feed(start, lossy=lossy))

    async def end(self, tp: TP) -> int:
        await self.life.breathe()
        return await super().end(tp)


class MortalFeed:
    """A read that stops when its process does."""

    def __init__(self, life: Life, feed: Feed) -> None:
        self._life = life
        self._feed = feed

    async def poll(self, wait_s: float, max_records: int = 500) -> Any:
        await self._life.breathe()
        records = await self._feed.poll(wait_s, max_records)
        await self._life.breathe()
        return records

    async def seek(self, tp: TP, offset: int) -> None:
        await self._feed.seek(tp, offset)

    async def close(self) -> None:
        await self._feed.close()


class MortalShipper:
    """Ships record by record, so that the publisher may die between any two."""

    def __init__(self, life: Life) -> None:
        self._log = MortalLog(life)

    async def start(self) -> None:
        await self._log.start()

    async def stop(self) -> None:
        await self._log.stop()

    async def ship(self, shipment: Shipment) -> None:
        for tp, records in shipment.items():
            for record in records:
                offset = -1
                while offset < 0:
                    offset = await self._log.append(
                        tp, record.value, key=record.key, headers=record.headers
                    )

    async def topics(self) -> dict[str, int]:
        return {}


@dataclass(eq=False)
class World:
    """One broker, one machine, the processes around them, and one source of chance."""

    chance: random.Random
    folder: Path
    broker: MemoryBroker = field(default_factory=MemoryBroker)
    machine: Machine = field(default_factory=Machine)
    faults: Faults = field(default_factory=Faults)
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter)
    accidents: Counter[str] = field(default_factory=Counter)
    freezes: int = 0
    ahead_s: float = 0.0
    """By how much the machine's clock is wrong; each process is off by a little more."""
    stopped: list[str] = field(default_factory=list)
    """Why processes have ended themselves."""
    lives: dict[str, Life] = field(default_factory=dict)
    keepers: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def keep(self, name: str, run: Callable[[Life], Any]) -> None:
        """Run a process, and start it again a moment after each end, as a supervisor does."""
        self.keepers[name] = asyncio.ensure_future(self._keep(name, run))

    async def _keep(self, name: str, run: Callable[[Life], Any]) -> None:
        while True:
            life = self.lives[name] = Life(name, self)
            task = asyncio.create_task(self._live(life, run))
            await asyncio.wait(
                {task, asyncio.ensure_future(life.ended.wait())},
                return_when=asyncio.FIRST_COMPLETED,
            )
            if task.done() and not task.cancelled() and (error := task.exception()):
                self.stopped.append(f"{name}: {type(error).__name__}: {error}")
            life.kill("ended")
            await asyncio.sleep(self.chance.uniform(0.1, 1.5))

    async def _live(self, life: Life, run: Callable[[Life], Any]) -> None:
        LIFE.set(life)
        skew_s = self.chance.uniform(-0.5, 0.5)
        AHEAD_S.set(lambda: self.ahead_s + skew_s)
        await asyncio.ensure_future(run(life))

    def stop(self, name: str) -> None:
        """Stop a process for good."""
        self.keepers.pop(name).cancel()
        self.lives.pop(name).kill("stopped")

    def kill(self, name: str, why: str = "SIGKILL") -> None:
        self.lives[name].kill(why)

    def fatal(self, error: BaseException, where: str) -> None:
        """In place of `shared.bus.fatal.die`."""
        life = LIFE.get()
        if not life.dead:
            self.stopped.append(f"{life.name}: {where}: {type(error).__name__}: {error}")
            life.kill("fatal")


def decider(make: Callable[[], Decider[Any]], slot: str) -> Callable[[Life], Any]:
    """Return the main of a decider's process; rivals have different slots."""

    async def run(life: Life) -> None:
        core = make()
        inputs = [TP(topic, LANE) for topic in INPUTS[core.ledger]]
        decode = decode_report if core.ledger == "placement" else commands_only

        def lane(partition: int) -> Lane[Any]:
            return Lane(
                core,
                partition,
                MortalLog(life),
                inputs=[ACCESS, *inputs],
                decoder=InputDecoder(core.ledger, decode, core.consumed_events),
                snapshots=Snapshots(life.world.folder / slot, core.ledger, partition, "sim"),
                settings=SETTINGS,
                clock=clock_of(core.ledger, WallClock()),
            )

        async def watch_heartbeats(lane: Lane[Any]) -> None:
            await watch(lane, MortalLog(life))

        on_lane = watch_heartbeats if core.ledger == "placement" else None
        lanes = Lanes(lane, MortalLog(life), on_lane=on_lane)
        await lanes.start()
        await lanes.assign([LANE])
        await asyncio.gather(*(feed(life, lanes, tp) for tp in inputs))

    return run


async def feed(life: Life, lanes: Lanes[Any], tp: TP) -> None:
    """Deliver an input as the host does, with some records repeated and some left out."""
    chance, log = life.world.chance, MortalLog(life)
    source = await log.feed({tp: lanes.next_offsets()[tp]})

    while True:
        again = chance.random() < life.world.faults.rereads
        if again:
            await source.seek(tp, max(lanes.next_offsets()[tp] - chance.randint(1, 20), 0))
        entries = (await source.poll(0.5, chance.randint(1, 100))).get(tp, [])
        left_out = not again and chance.random() < life.world.faults.rereads
        for entry in entries[1 if left_out else 0 :]:
            if await lanes.deliver(tp, entry.offset, entry.value) == "gap":
                await source.seek(tp, lanes.next_offsets()[tp])
                break


def executor(nodes: tuple[InventoryNode, ...], name: str) -> Callable[[Life], Any]:
    async def run(life: Life) -> None:
        settings = ExecutorSettings(
            kafka="sim:1", data=life.world.folder / name, executor_id=name, nodes=Path("none")
        )
        served = VirtualServer(settings, nodes, lambda: MortalLog(life), Metrics("executor", name))
        await served.run(asyncio.Event())

    return run


def publisher() -> Callable[[Life], Any]:
    async def run(life: Life) -> None:
        settings = PublisherSettings(
            kafka="sim:1", data=life.world.folder / "publisher", partitions=1
        )
        await Publisher(
            settings, lambda: MortalLog(life), lambda: MortalShipper(life), Metrics("publisher")
        ).run()

    return run


__all__ = ["TailLost"]
