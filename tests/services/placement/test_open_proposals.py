"""A scheduler in a process of its own: the same proposal as here, and one that never comes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable

import pytest

from services.placement import open_proposals
from services.placement.children.process import MOST_ANSWER_BYTES, Child
from services.placement.core.scheduled.request import propose_now
from services.placement.lane_signals import LaneSignals
from services.placement.open_proposals import PROGRAM, make_open_proposals, make_proposal, viewed
from shared.contracts.pools import PoolConfigured
from shared.contracts.proposals import ProposalReady
from shared.contracts.schedules import ProposalOpened
from tests.patience import PATIENCE_S
from tests.services.placement.core.lane import Lane, job
from tests.services.placement.core.scheduled.pools import FAST, typed
from tests.services.placement.held_lane import HeldLane

pytestmark = pytest.mark.process

START = "from services.placement.proposals import __main__ as own; "
FROM_THE_PIPE = "own.serving.run(own.answer)"
HUNGRY = f"""
from typing import ClassVar
from services.placement.core.scheduled import request
from shared.schedulers.hooks import Hooks
{START}

class Hungry(Hooks):
    name: ClassVar[str] = "hungry"
    source: ClassVar[str] = "a test"

    def rank(self, view, memory):
        return ["x" * (64 << 30)]

request.scheduler_of = lambda name: Hungry()
own.bound_memory()
{FROM_THE_PIPE}
"""
"""Asks for more memory than its bound."""


HANGS = f"""
import time
from services.placement.core.scheduled import request
{START}
usual = request.scheduler_of
request.scheduler_of = lambda name: time.sleep(1000) if name == "hanging" else usual(name)
{FROM_THE_PIPE}
"""


@pytest.fixture
async def child() -> AsyncIterator[Callable[..., Child]]:
    made: list[Child] = []

    def start(*program: str) -> Child:
        made.append(Child(program))
        return made[-1]

    yield start
    for one in made:
        await one.close()


def opened(scheduler: str = "gavel") -> Lane:
    pool = typed(scheduler)
    pool.proposes = False
    pool.submit(job("one", 4, gpu_speeds={FAST: 2.0}), job("two", 4, walltime_s=100))
    return pool


async def proposal(pool: Lane, child: Child, limit_s: float = PATIENCE_S) -> ProposalReady:
    open_ = pool.state.schedule.open
    assert open_ is not None
    return await make_proposal(viewed(pool.state), open_.seq, child, limit_s)


async def test_a_proposal_of_the_process_is_the_one_that_would_be_made_here(
    child: Callable[..., Child],
) -> None:
    pool = opened()
    made = await proposal(pool, child(*PROGRAM))
    here = propose_now(pool.state)
    assert here is not None and here.proposed
    assert made.propose_ms > 0
    assert made.model_copy(update={"propose_ms": 0.0}) == here


async def test_a_process_that_never_answers_is_late(child: Callable[..., Child]) -> None:
    silent = child(sys.executable, "-c", "import sys; sys.stdin.buffer.read()")
    answer = await proposal(opened(), silent, limit_s=0.1)
    assert answer.failed == "late"
    assert silent.pid is None


@pytest.mark.parametrize(
    "program", ["", "import os; os.write(1, (5).to_bytes(4, 'big') + b'hello')"]
)
async def test_a_process_that_ends_or_says_nonsense_made_no_proposal(
    child: Callable[..., Child], program: str
) -> None:
    assert (await proposal(opened(), child(sys.executable, "-c", program))).failed == "died"


async def test_a_scheduler_that_wants_more_memory_than_its_bound_is_refused(
    child: Callable[..., Child],
) -> None:
    answer = await proposal(opened("hungry"), child(sys.executable, "-c", HUNGRY))
    assert answer.refused == "scheduler hungry: MemoryError"


async def test_without_a_process_or_with_an_answer_beyond_all_bounds_there_is_no_proposal(
    child: Callable[..., Child],
) -> None:
    assert (await proposal(opened(), child("/no/such/program"))).failed == "died"
    vast = f"import os; os.write(1, ({MOST_ANSWER_BYTES} + 1).to_bytes(4, 'big'))"
    assert (await proposal(opened(), child(sys.executable, "-c", vast))).failed == "died"


async def test_a_view_that_cannot_be_made_is_no_proposal(
    child: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_view(pool: object) -> None:
        raise KeyError("f")

    monkeypatch.setattr(open_proposals, "request_of", no_view)
    assert (await proposal(opened(), child(*PROGRAM))).failed == "died"


async def test_a_hanging_scheduler_that_is_replaced_costs_its_successor_no_time() -> None:
    """It would hang beyond all patience: its process is killed once another proposal is open."""
    pool = opened("hanging")
    lane, signals = HeldLane(pool), LaneSignals(ProposalOpened, PoolConfigured)
    program = (sys.executable, "-c", HANGS)
    task = asyncio.create_task(make_open_proposals(lane, signals, print, program))  # type: ignore[arg-type]
    try:
        await asyncio.sleep(0)
        replaced = pool.state.schedule.open
        pool.pool(scheduler="gavel", min_residency_s=0)
        assert pool.state.schedule.open not in (None, replaced), "the next one is open at once"
        signals.accepted(pool.facts)
        async with asyncio.timeout(PATIENCE_S):
            answer = await lane.offered.get()
        open_ = pool.state.schedule.open
        assert isinstance(answer, ProposalReady)
        assert open_ is not None and answer.at_seq == open_.seq
        assert answer.proposed and not answer.failed
    finally:
        task.cancel()
        await asyncio.wait((task,))
