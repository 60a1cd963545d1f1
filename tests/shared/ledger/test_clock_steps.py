"""The clock of a decider's host steps by an hour: it is an event, and the ledger's time goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from services.admission.core.decide import Admission
from services.failslow.core.decide import FailSlow
from services.placement.core.decide import Placement
from services.priority.core.decide import Priority
from shared.contracts.clocks import ClockStepObserved, ClockStepped
from shared.contracts.pools import PoolConfigured
from shared.ledger.decider import Decider
from tests.embedded_broker import embedded_broker
from tests.harness.decider import AT, an_input, given, run
from tests.patience import PATIENCE_S
from tests.services.placement.test_service import Stage

HOUR_MS = 3_600_000
POOL = PoolConfigured(partition=0, pool="p", release=1)
DECIDERS: list[Decider[Any]] = [Admission(), Priority(), Placement(), FailSlow()]

each = pytest.mark.parametrize("decider", DECIDERS, ids=lambda decider: decider.ledger)


@each
@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS])
def test_a_step_of_the_clock_is_an_event_and_in_the_state(
    decider: Decider[Any], by_ms: int
) -> None:
    state = given(decider, POOL)
    observed = an_input(ClockStepObserved(by_ms=by_ms, ahead_ms=by_ms), "local")
    (stepped,) = run(decider, state, [observed], AT)
    assert stepped == ClockStepped(
        service=decider.ledger,
        partition=0,
        by_ms=by_ms,
        before_ms=AT,
        after_ms=AT + by_ms,
        ahead_ms=by_ms,
    )
    assert state.clock_step == stepped


@each
def test_a_step_is_no_event_while_an_earlier_release_may_take_over(decider: Decider[Any]) -> None:
    observed = an_input(ClockStepObserved(by_ms=HOUR_MS, ahead_ms=HOUR_MS), "local")
    for history in ([], [POOL.model_copy(update={"release": 0})]):
        assert run(decider, given(decider, *history), [observed], AT) == []


async def stepped_by(stage: Stage, hours: int) -> ClockStepped:
    """Set the error of the program's clock, and return the step that it records."""
    before = sum(isinstance(fact.event, ClockStepped) for fact in stage.facts)
    stage.shift_clock(hours * 3_600)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            # Any record lets the lane decide; this one has nothing for it.
            await stage.write("access", POOL)
            await stage.read()
            steps = [fact.event for fact in stage.facts if isinstance(fact.event, ClockStepped)]
            if len(steps) > before:
                return steps[before]


@pytest.mark.parts
@pytest.mark.stack
@pytest.mark.parametrize("service", ["admission", "priority", "failslow"])
async def test_a_service_records_the_steps_of_its_clock_and_keeps_its_time(
    tmp_path: Path, service: str
) -> None:
    """Placement's test is in its own file: no node is lost."""
    with embedded_broker(tmp_path / "broker") as kafka:
        stage = Stage(tmp_path, kafka, service)
        try:
            await stage.open()
            await stage.write("access", POOL)
            program = stage.start()
            await stage.decided(PoolConfigured)
            steps = [await stepped_by(stage, hours) for hours in (1, 0, -1)]
            assert [round(step.by_ms / HOUR_MS, 2) for step in steps] == [1, -1, -1]
            times = [fact.at for fact in stage.facts]
            assert times == sorted(times) and times[-1] - times[0] < HOUR_MS / 2
            program.terminate()
            assert program.wait(PATIENCE_S) == 0
        finally:
            await stage.close()
