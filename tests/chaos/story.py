"""A seeded story: jobs arrive, processes die, and at the end a judge reads the ledgers."""

from __future__ import annotations

import asyncio
import hashlib
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from services.admission.core.decide import Admission
from services.executor.core.virtual.inventory import InventoryNode
from services.placement.core.decide import Placement
from services.priority.core.decide import Priority
from shared.bus.clock import now_ms
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.access import TenantRegistered
from shared.contracts.codec import encode
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.job_spec import Gang, JobSpec, Retry, Simulated
from shared.contracts.placement import JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.ledger import cloudevents
from shared.ledger.errors import ProtocolViolation
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Reader
from shared.verify.reading import InstallationLog
from shared.verify.run import verify
from tests.chaos import virtual_time
from tests.chaos.processes import (
    LANE,
    Faults,
    Shape,
    WatchedBackend,
    World,
    decider,
    executor,
    make_task,
    publisher,
)

POOL = PoolConfigured(
    pool="sim",
    partition=LANE,
    lease_s=6.0,
    round_ms=50,
    rank_ms=200,
    start_timeout_s=10.0,
    publish_predictions=True,
)
TENANTS = ("ada", "bob")
DECIDERS = {"admission": Admission, "priority": Priority, "placement": Placement}
ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1", "job.rejected.v1")
ROUGH = Faults(dies=0.01, freezes=0.004, accident=0.06, rereads=0.05)

Sabotage = Callable[[], ExitStack]


@dataclass(frozen=True, slots=True)
class Plot:
    """The number of each event of a story; the seed decides when they happen."""

    seed: int
    jobs: int = 60
    per_s: float = 4.0
    faults: Faults = ROUGH
    kills: int = 12
    """Random SIGKILLs, besides those on commit borders."""
    zombies: int = 6
    """Copies of a decider that are frozen while another takes over."""
    jumps: int = 6
    """Times at which the clock is set forward or back, by up to an hour."""
    rivals: bool = True
    """A second copy of placement runs all the time."""
    copies: int = 5
    """Commands are delivered up to so many times, the repeats late and so in another order."""
    patience_s: float = 150.0
    """Virtual time after the last fault, in which every job must end."""


@dataclass(slots=True)
class Outcome:
    """The findings of the judge, and counts of the faults."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    deaths: int = 0
    freezes: int = 0
    accidents: int = 0
    ignored: int = 0
    records: int = 0
    virtual_s: float = 0.0
    state: str = ""
    """Hash of the end of each job: equal for equal commands."""
    broker: MemoryBroker = field(default_factory=MemoryBroker, compare=False, repr=False)
    """The logs at the end."""


def nodes() -> tuple[InventoryNode, ...]:
    return tuple(
        InventoryNode(
            node_id=f"n{n}",
            pool=POOL.pool,
            backend="virtual",
            gpu_type="a100",
            gpus=4,
            cpus=64,
            mem_gib=512,
            rack="r",
            labels=(),
        )
        for n in range(4)
    )


def tell(plot: Plot, sabotage: Callable[[], ExitStack] | None = None) -> Outcome:
    """Run the story in virtual time; `sabotage` is for the services, never for the judge."""
    with tempfile.TemporaryDirectory(prefix="berth-sim-") as name:
        return virtual_time.run(plot.seed, lambda: _tell(plot, Path(name), sabotage))


async def _tell(plot: Plot, folder: Path, sabotage: Callable[[], ExitStack] | None) -> Outcome:
    asyncio.get_running_loop().set_task_factory(make_task)
    world = World(random.Random(plot.seed), folder)
    outcome = Outcome(plot.seed, broker=world.broker)
    with (
        patch("shared.bus.fatal.die", world.fatal),
        patch("services.executor.virtual.performer.VirtualBackend", WatchedBackend),
    ):
        try:
            with (sabotage or ExitStack)():
                acked = await _play(world, plot, outcome)
            await _judge(world, outcome, acked)
        except ProtocolViolation as error:
            outcome.wrong.append(f"no reader gets through the ledgers: {error}")
    outcome.deaths = sum(n for (_, why), n in world.deaths.items() if why != "stopped")
    outcome.freezes, outcome.accidents = world.freezes, world.accidents.total()
    outcome.wrong += world.machine.wrong + world.stopped
    outcome.virtual_s = round(asyncio.get_running_loop().time(), 1)
    return outcome


async def _play(world: World, plot: Plot, outcome: Outcome) -> list[str]:
    writer = LedgerWriter(world.broker, "access")
    writer.write([POOL, *(TenantRegistered(tenant=t, default_pool=POOL.pool) for t in TENANTS)])
    for name, make in DECIDERS.items():
        world.keep(name, decider(make, name))
    if plot.rivals:
        world.keep("placement-rival", decider(Placement, "placement-rival"))
    world.keep("executor", executor(nodes(), "sim"))
    world.keep("publisher", publisher())
    await asyncio.sleep(2.0)
    world.faults = plot.faults
    disturbing = [asyncio.ensure_future(disturb(world, plot)) for disturb in (_kill, _haunt, _jump)]
    acked = await _submit(world, plot)
    await asyncio.wait(disturbing)
    world.faults = Faults.none()
    try:
        async with asyncio.timeout(plot.patience_s):
            while not set(acked) <= _ended(world).keys():
                await asyncio.sleep(2.0)
    except TimeoutError:
        outcome.wrong.append(f"never ended: {sorted(set(acked) - _ended(world).keys())[:5]}")
    await asyncio.sleep(15.0)
    return acked


async def _kill(world: World, plot: Plot) -> None:
    for _ in range(plot.kills):
        await asyncio.sleep(world.chance.uniform(0.2, 2 * plot.jobs / plot.per_s / plot.kills))
        world.kill(world.chance.choice(sorted(world.lives)))


async def _haunt(world: World, plot: Plot) -> None:
    for _ in range(plot.zombies):
        await asyncio.sleep(world.chance.uniform(0.2, 2 * plot.jobs / plot.per_s / plot.zombies))
        deciders = [name for name in sorted(world.lives) if name not in ("executor", "publisher")]
        life = world.lives[world.chance.choice(deciders)]
        if life.awake.is_set():
            life.freeze(world.chance.uniform(1.0, 10.0))


async def _jump(world: World, plot: Plot) -> None:
    for _ in range(plot.jumps):
        await asyncio.sleep(world.chance.uniform(0.2, 2 * plot.jobs / plot.per_s / plot.jumps))
        world.ahead_s = world.chance.choice((0.0, world.chance.uniform(-3600, 3600)))


async def _submit(world: World, plot: Plot) -> list[str]:
    """Submit the jobs; return the ids whose command the broker has acknowledged."""
    chance, acked = world.chance, []
    for number in range(plot.jobs):
        await asyncio.sleep(chance.expovariate(plot.per_s))
        job = submission(chance, number)
        _deliver(world, plot, f"c{number}", job)
        acked.append(job.job_id)
        if number % 17 == 0:
            _deliver(world, plot, f"x{number}", CancelJob(job_id=job.job_id))
        if number % 13 == 0:
            world.broker.append(TP("commands", LANE), b"\xff no command")
    return acked


def _deliver(world: World, plot: Plot, id: str, message: SubmitJob | CancelJob) -> None:
    value = cloudevents.encode(
        id=id, source="/sim", type=message.TYPE, data=encode(message), at_ms=now_ms()
    )
    world.broker.append(TP("commands", LANE), value)
    for _ in range(world.chance.randrange(plot.copies)):
        late_s = world.chance.uniform(0.0, 5.0)
        loop = asyncio.get_running_loop()
        loop.call_later(late_s, world.broker.append, TP("commands", LANE), value)


def submission(chance: random.Random, number: int) -> SubmitJob:
    spec = JobSpec(
        name=f"job {number}",
        gang=Gang(workers=chance.choice((1, 1, 2, 3)), gpus_per_worker=chance.choice((0.5, 1, 2))),
        retry=Retry(max_attempts=chance.choice((1, 3)), backoff_s=1.0),
        simulated=Simulated(
            duration_s=round(chance.expovariate(1 / 3), 3), exit_code=number % 11 == 0
        ),
    )
    return SubmitJob(
        job_id=f"j{number}",
        tenant=TENANTS[number % 2],
        pool=POOL.pool,
        idempotency_key=f"k{number}",
        spec=spec,
    )


def _accepted(world: World, ledger: str) -> Iterator[Accepted]:
    reader = Reader(ledger, LANE)
    for entry in world.broker.entries(TP(ledger, LANE)):
        if accepted := reader.offer(entry.offset, entry.value):
            yield accepted


def _ended(world: World) -> dict[str, str]:
    """Return the type of the last event of each ended job."""
    return {
        raw.subject: raw.type
        for ledger in ("admission", "placement")
        for accepted in _accepted(world, ledger)
        for raw in accepted.raw()
        if raw.type in ENDS
    }


async def _judge(world: World, outcome: Outcome, acked: list[str]) -> None:
    logs = InstallationLog(MemoryLog(world.broker), 1, quiet_s=0.0, catch_up_s=20.0)
    report = await verify(logs, None, acked=[job.replace("j", "c") for job in acked])
    outcome.wrong += [str(violation) for violation in report.violations]
    ended = _ended(world)
    outcome.state = hashlib.sha256(repr(sorted(ended.items())).encode()).hexdigest()[:16]
    for ledger in DECIDERS:
        tp = TP(ledger, LANE)
        counted = sum(1 for _ in _accepted(world, ledger))
        outcome.records += counted
        outcome.ignored += len(world.broker.entries(tp)) - counted
    outcome.wrong += _unaccepted(world)
    outcome.wrong += _lost(acked, ended)


def _lost(acked: list[str], ended: dict[str, str]) -> list[str]:
    return [f"{job} was acknowledged and has no end" for job in acked if job not in ended]


def _unaccepted(world: World) -> list[str]:
    """Return a finding per prepared allocation that is in no accepted record (I9)."""
    placed: set[tuple[str, Shape]] = set()
    for accepted in _accepted(world, "placement"):
        for fact in accepted.facts():
            if isinstance(fact.event, JobPlaced):
                for lease in fact.event.allocations:
                    shape = fact.event.job_id, lease.node_id, lease.gpus
                    placed.add((f"{fact.place}/{lease.rank}", shape))
    return [
        f"the executor made {allocation} ready as {shape}, which is in no accepted record"
        for allocation, shapes in world.machine.ordered.items()
        for shape in shapes
        if (allocation, shape) not in placed
    ]
