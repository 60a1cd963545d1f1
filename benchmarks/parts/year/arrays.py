"""One array of jobs with a large program: bytes of the ledgers, recorded once and with each job."""

from __future__ import annotations

from benchmarks.parts.year.jobs import send
from benchmarks.parts.year.volumes import topic_bytes
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec, Simulated
from simulator.engine.scenario import FIRST_MS, POOL, simulated_pool
from simulator.engine.sizing import equal_nodes
from simulator.engine.world import BEGIN, World

LEDGERS = ("admission", "priority", "placement")
TENANT = "vision"
VALUE_BYTES = 8_000
"""Of one environment variable, nearly the most that is allowed."""
NODES = 4


def array_megabytes(jobs: int, program_kib: int) -> dict[str, dict[str, float]]:
    """Return the MB of each ledger after one array was submitted, in both ways."""
    ways = {"once": True, "repeated": False}
    return {way: _megabytes(jobs, program_kib, is_once) for way, is_once in ways.items()}


def _megabytes(jobs: int, program_kib: int, is_once: bool) -> dict[str, float]:
    pool = simulated_pool(rank_ms=1000, programs_once=is_once)
    world = World(pool, [TENANT], equal_nodes(NODES, pool=POOL), ledgers=True)
    world.run(BEGIN + FIRST_MS)
    send(world, _array(jobs, program_kib), 0)
    world.run(BEGIN + 2 * FIRST_MS)
    volumes = topic_bytes(world.broker)
    return {ledger: round(volumes[ledger] / 1e6, 3) for ledger in LEDGERS}


def _array(jobs: int, program_kib: int) -> SubmitJob:
    variables = -(-program_kib * 1024 // VALUE_BYTES)
    env = {f"PART_{number}": "x" * VALUE_BYTES for number in range(variables)}
    spec = JobSpec(
        name="sweep", command=("python", "train.py"), env=env, simulated=Simulated(duration_s=1e6)
    )
    return SubmitJob(
        job_id="sweep",
        tenant=TENANT,
        pool=POOL,
        idempotency_key="sweep",
        array_size=jobs,
        spec=spec,
    )
