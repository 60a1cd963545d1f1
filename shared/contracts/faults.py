"""Workers that go slow without failing."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Command, Event, Model, Text, command, event


class GangWorker(Model):
    """Where one worker of a watched gang runs."""

    rank: int = Field(ge=0, description="of the worker in its gang")
    node_id: str = Field(description="the node")
    allocation_id: str = Field(description="`partition/seq/index/rank`")


class WatchedGang(Model):
    """A running gang whose workers can be compared with each other."""

    job_id: str = Field(description="the job")
    tenant: str = Field("", description="whose")
    attempt: int = Field(ge=1, description="which time it runs")
    workers: tuple[GangWorker, ...] = Field(description="in rank order")
    traceparent: str = Field("", description="of the placement that began it")


@command
class DismissFault(Command):
    """An operator saw the suspicion and wants nothing done."""

    TYPE: ClassVar[str] = "fault.dismiss.v1"
    OWNER: ClassVar[str] = "failslow"
    fault_id: str = Field(max_length=128, description="the fault")
    reason: Text = Field("", description="for the record")


@command
class MarkFalseAlarm(Command):
    """An operator found the worker healthy; the detector's record says so."""

    TYPE: ClassVar[str] = "fault.mark-false-alarm.v1"
    OWNER: ClassVar[str] = "failslow"
    fault_id: str = Field(max_length=128, description="the fault")
    reason: Text = Field("", description="for the record")


@event
class GangsNoted(Event):
    """Fail-slow began or ceased to watch these gangs."""

    TYPE: ClassVar[str] = "gangs.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    started: tuple[WatchedGang, ...] = Field((), description="gangs of two workers and more")
    ended: tuple[str, ...] = Field((), description="jobs that run no more")


@event
class FaultSuspected(Event):
    """A worker is slower than its peers, for several reports in a row."""

    TYPE: ClassVar[str] = "fault.suspected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "fault_id"
    fault_id: str = Field(description="`job/attempt/rank/count`")
    job_id: str = Field(description="the job that suffers")
    tenant: str = Field("", description="whose")
    node_id: str = Field(description="where the slow worker runs")
    allocation_id: str = Field(description="the slow worker")
    slowdown: float = Field(ge=1, description="its iteration time over the median of its peers")
    iteration_s: float = Field(ge=0, description="median of its last iterations, cluster s")
    peers_s: float = Field(ge=0, description="median of its peers, cluster s")
    score: float = Field(description="robust z of the worker among its peers")
    reports: int = Field(ge=1, description="reports in a row that said so")


@event
class FaultCleared(Event):
    """The worker is as fast as its peers again, or its job ended."""

    TYPE: ClassVar[str] = "fault.cleared.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "fault_id"
    fault_id: str = Field(description="the fault")
    job_id: str = Field(description="the job that suffered")
    tenant: str = Field("", description="whose")
    node_id: str = Field("", description="where the worker ran")
    reason: str = Field(description="recovered or job_ended")


@event
class FaultDismissed(Event):
    """An operator closed the suspicion."""

    TYPE: ClassVar[str] = "fault.dismissed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "fault_id"
    fault_id: str = Field(description="the fault")
    job_id: str = Field("", description="the job")
    tenant: str = Field("", description="whose")
    node_id: str = Field("", description="where the worker runs")
    false_alarm: bool = Field(description="the worker was healthy")
    reason: str = Field("", description="as given")
