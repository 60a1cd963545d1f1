"""Runs a decider as a service; every `services/<name>/app.py` calls it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from shared.bus.archive.opening import with_archive
from shared.bus.clock import LedgerClock, WallClock
from shared.bus.failpoints import Failpoints
from shared.bus.folds.fold_key import key_of_state
from shared.bus.folds.snapshots import Snapshots
from shared.bus.hosting.faust_host import FaustHost
from shared.bus.hosting.lanes import Lanes, OnLane
from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.lane.rounds import OnAccepted
from shared.bus.logs.kafka import KafkaLog
from shared.bus.steady_clock import SteadyClock
from shared.contracts.clocks import ClockStepObserved
from shared.contracts.topics import INPUTS
from shared.ledger.decider import Decider
from shared.ledger.inputs import Decode, InputDecoder, commands_only
from shared.ledger.partition import TP
from shared.process.heap import settle_heap
from shared.process.settings import Settings

S = TypeVar("S")

FOLLOWS_WALL_CLOCK = ("access", "throttle")

Background = Callable[[Lanes[Any]], Coroutine[Any, Any, None]]
"""Work of the shell beside the lanes (an HTTP server, ...): it runs until the service ends."""


def run_service(
    decider: Decider[S],
    *,
    settings: Settings,
    decode: Decode = commands_only,
    on_accepted: OnAccepted | None = None,
    on_lane: OnLane | None = None,
    background: Background | None = None,
) -> None:
    """Host the decider under Faust until SIGTERM, which ends the process with 0.

    `on_lane(lane)` runs while that lane is held and is cancelled when it is lost.
    """
    lanes = make_lanes(decider, settings, decode, on_accepted, on_lane)
    host = FaustHost(
        decider.ledger,
        INPUTS[decider.ledger],
        lanes,
        settings=settings,
        partitions=partitions_of(decider.ledger, settings.partitions),
        background=background,
    )
    settle_heap()
    host.run()


def partitions_of(ledger: str, partitions: int) -> int:
    return 1 if ledger == ACCESS.topic else partitions


def make_lanes(
    decider: Decider[S],
    settings: Settings,
    decode: Decode = commands_only,
    on_accepted: OnAccepted | None = None,
    on_lane: OnLane | None = None,
) -> Lanes[S]:
    follows_access = decider.ledger != ACCESS.topic
    client = f"berth-{decider.ledger}"
    decoder = InputDecoder(decider.ledger, decode, decider.consumed_events)
    # The fetch of a busy reader has gathered for `window_ms` already: see `Pace`.
    lane_settings = LaneSettings(
        window_ms=settings.window_ms // 4, failpoints=Failpoints.from_environment()
    )

    wall = WallClock()

    def make(partition: int) -> Lane[S]:
        inputs = [TP(topic, partition) for topic in INPUTS[decider.ledger]]
        clock = clock_of(decider.ledger, wall)
        lane = Lane(
            decider,
            partition,
            with_archive(KafkaLog(settings.connection, client=client), settings.archive),
            inputs=[ACCESS, *inputs] if follows_access else inputs,
            decoder=decoder,
            snapshots=snapshots_of(decider, settings.data, partition),
            settings=lane_settings,
            on_accepted=on_accepted,
            clock=clock,
        )
        lane.report_steps(lambda by_ms: ClockStepObserved(by_ms=by_ms, ahead_ms=clock.ahead_ms))
        return lane

    log = with_archive(KafkaLog(settings.connection, client=client), settings.archive)
    return Lanes(make, log, on_lane=on_lane, follows_access=follows_access, wall=wall)


def clock_of(ledger: str, wall: WallClock) -> LedgerClock:
    """Return the clock of a lane of that service.

    The terms of `access` (keys, credentials) end by the wall clock, and the throttle keeps the
    steps in its state.
    """
    return LedgerClock(wall) if ledger in FOLLOWS_WALL_CLOCK else SteadyClock(wall)


def snapshots_of(decider: Decider[S], data: Path, lane: int) -> Snapshots[S]:
    """Return the snapshots of a lane, those of this fold alone."""
    key = key_of_state(type(decider.initial(lane)))
    return Snapshots(data / "snapshots", decider.ledger, lane, key)
