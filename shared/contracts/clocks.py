"""Steps of the clock of a service's host."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, Local, event


class ClockStepObserved(Local):
    """The clock of the service's host stepped: no time passed."""

    by_ms: int = Field(description="step, wall ms; negative: back")
    ahead_ms: int = Field(
        0, description="by how much the wall clock is then ahead of the ledger's time, ms"
    )


@event
class ClockStepped(Event):
    """The clock of a lane's host stepped; the time of its ledger did not."""

    TYPE: ClassVar[str] = "clock.stepped.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "priority", "placement", "failslow")
    SUBJECT: ClassVar[str] = "service"
    PUBLIC: ClassVar[bool] = False
    service: str = Field(description="the service")
    partition: int = Field(ge=0, description="its lane")
    by_ms: int = Field(description="step, wall ms; negative: back")
    before_ms: int = Field(description="ms, what the wall clock would show without the step")
    after_ms: int = Field(description="ms, what it shows")
    ahead_ms: int = Field(
        description="by how much it is ahead of the ledger's time, all steps together, ms"
    )
