"""The solver in its own process: the same answers as here, under any hash seed, and its death."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from services.placement.children.frames import framed
from services.placement.children.process import ChildDied
from services.placement.core.round.view import view_of
from services.placement.core.solver.contended import instance_for_round
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import Instance
from services.placement.core.solver.solve import solve
from services.placement.solver.messages import (
    SolverReply,
    SolverRequest,
    pack,
    reply_of,
    request_of,
)
from services.placement.solver.process import PROGRAM, Solver
from tests.patience import PATIENCE_S
from tests.services.placement.core.lane import job, lane

pytestmark = pytest.mark.process

WORK = 0.3


def instance() -> Instance:
    made = lane(*(f"n{n}" for n in range(6)), solver="cpsat")
    sizes = (3, 5, 2, 6, 4, 7, 1, 5, 3, 2, 4, 6)
    made.submit(*(job(f"j{n:02d}", gpus=size) for n, size in enumerate(sizes)))
    return instance_for_round(made.state)


def hard() -> Instance:
    """Takes the solver seconds: many nodes, and sizes that fill none of them."""
    nodes = [f"n{n:02d}" for n in range(40)]
    made = lane(*nodes, solver="cpsat")
    for n in range(40):
        made.node(f"n{n:02d}b", 5 + n % 3)
    sizes = (3, 5, 2, 4, 7)
    gangs = (job(f"j{n:03d}", gpus=sizes[n % 5], workers=1 + n % 4) for n in range(300))
    made.submit(*gangs)
    return instance_for_round(made.state)


@pytest.fixture
async def solver() -> AsyncIterator[Solver]:
    made = Solver()
    yield made
    await made.close()


def test_frames_carry_every_field() -> None:
    given = SolverRequest(instance(), WORK, None)
    assert request_of(pack(given)) == given
    reply = SolverReply(solve(given.instance, WORK), 1.5)
    assert reply_of(pack(reply)) == reply


@pytest.mark.parametrize("seed", ["1", "4242"])
async def test_the_same_bytes_lead_to_the_same_plan_under_any_hash_seed(seed: str) -> None:
    given = instance()
    here = solve(given, WORK)
    assert here.objective > here.greedy, "or this would only show that greedy is kept"
    there = Solver(environment={**os.environ, "PYTHONHASHSEED": seed})
    try:
        answers = [await there.solve(given, WORK, PATIENCE_S) for _ in range(2)]
    finally:
        await there.close()
    assert [reply.solved for reply in answers] == [here, here]


async def test_killed_while_it_solves_it_is_started_again(solver: Solver) -> None:
    await solver.solve(instance(), WORK, PATIENCE_S)
    pid = solver.pid
    assert pid is not None
    task = asyncio.ensure_future(solver.solve(hard(), 1000.0, PATIENCE_S))
    await asyncio.sleep(0.3)
    assert not task.done()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ChildDied):
        await task
    reply = await solver.solve(instance(), WORK, PATIENCE_S)
    assert reply.solved == solve(instance(), WORK) and solver.starts == 2


async def test_a_cancelled_request_leaves_no_reply_for_the_next(solver: Solver) -> None:
    await solver.start()
    task = asyncio.ensure_future(solver.solve(hard(), 1000.0, PATIENCE_S))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    reply = await solver.solve(instance(), WORK, PATIENCE_S)
    assert reply.solved.plan == solve(instance(), WORK).plan


async def test_it_ends_when_its_parent_hangs_up(solver: Solver) -> None:
    await solver.start()
    process = solver._process
    assert process is not None and process.stdin is not None
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


async def test_a_reply_to_a_parent_that_is_gone_is_no_error() -> None:
    candidate = framed(pack(SolverRequest(instance(), WORK, PATIENCE_S)))
    reading, writing = os.pipe()
    os.close(reading)
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, stdin=PIPE, stdout=writing, stderr=PIPE
    )
    os.close(writing)
    _, published = await process.communicate(candidate)
    assert (process.returncode, published) == (0, b"")


async def test_a_malformed_instance_kills_the_process_and_no_more(solver: Solver) -> None:
    bad = replace(instance(), full_nodes="many")  # type: ignore[arg-type]
    with pytest.raises(ChildDied):
        await solver.solve(bad, WORK, PATIENCE_S)
    assert (await solver.solve(instance(), WORK, PATIENCE_S)).solved.objective


def test_a_view_of_nothing_has_no_plan() -> None:
    made = lane("n1", solver="cpsat")
    empty = instance_of(view_of(made.state, made.now))
    assert solve(empty, WORK).plan.starts == ()
