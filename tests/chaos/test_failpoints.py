"""Real processes die at their commit borders while jobs run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from infra.supervisor.stack import AGENT
from shared.bus.failpoints import NAMES, Failpoints
from shared.bus.folds import snapshots as snapshots_module
from shared.bus.folds.snapshots import Snapshots
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.tail import LedgerTail
from shared.contracts.identity import derive_job_id
from shared.ledger.reader import Cursor
from tests.e2e.stand import POOL, Stand, a_stand, a_submission
from tests.patience import PATIENCE_S
from tests.shared.job_logs.test_writer import PLACES

JOBS, GROUPS = 40, 8
ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1")

RUNS: dict[str, dict[str, str]] = {
    "first": {
        "admission": "before_send:8",
        "priority": "in_flight:8",
        "placement": "after_ack:10",
        "projector": "before_commit:10",
        "publisher": "half_published:10",
        "gateway": "after_forward:3",
        "executor-virtual": "after_report:6",
    },
    "second": {
        "admission": "in_flight:8",
        "priority": "after_ack:8",
        "placement": "before_send:10",
        "projector": "after_commit:10",
        "publisher": "after_publish:10",
        "executor-virtual": "before_report:6",
    },
    "third": {
        "admission": "after_ack:8",
        "priority": "before_send:8",
        "placement": "in_flight:10",
        "publisher": "before_publish:10",
        "gateway": "after_forward:3",
    },
}
LONG = os.environ.get("BERTH_CHAOS") == "long"


def deaths(stand: Stand, service: str, place: str) -> int:
    path = stand.stack.data_dir / "logs" / f"{service}.log"
    return path.read_text(errors="replace").count(f"failpoint {place}\n")


def publish(stand: Stand, group: int) -> list[str]:
    """Submit a group of jobs as acknowledged events; return their ids."""
    keys = [f"g{group}-{number}" for number in range(JOBS // GROUPS)]
    lane = group % stand.stack.partitions
    submissions = (a_submission(key, simulated={"duration_s": 0.2}) for key in keys)
    stand.publish("submissions.ada", lane, *submissions)
    return [derive_job_id("ada", POOL, key) for key in keys]


async def until_ended(stand: Stand, jobs: set[str]) -> None:
    """Wait for the end of the jobs, by the ledger alone: the gateway may be dead."""
    log = KafkaLog(stand.stack.connection("operator"), client="e2e")
    tail = LedgerTail(log, {"placement": [stand.lane]})
    await tail.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while jobs:
                for accepted in await tail.poll(0.2):
                    jobs -= {raw.subject for raw in accepted.raw() if raw.type in ENDS}
    finally:
        await tail.stop()


@pytest.mark.stack
@pytest.mark.parts
@pytest.mark.parametrize(
    "armed",
    [
        pytest.param(
            run,
            id=name,
            marks=pytest.mark.skipif(
                name != "first" and not LONG, reason="only in the long form: BERTH_CHAOS=long"
            ),
        )
        for name, run in RUNS.items()
    ],
)
def test_nothing_is_lost_or_doubled_by_deaths_at_the_commits(armed: dict[str, str]) -> None:
    env = {name: {"BERTH_FAILPOINT": place} for name, place in armed.items()}
    with a_stand(AGENT, env=env) as stand:
        for group in range(GROUPS):
            # One after the other, or all of it would be one batch.
            asyncio.run(until_ended(stand, set(publish(stand, group))))
        assert stand.verify().violations == []
        counted = {name: deaths(stand, name, armed[name].partition(":")[0]) for name in armed}
        assert min(counted.values()) > 0, counted


def test_every_place_is_passed_by_some_run_or_test() -> None:
    here = {place.partition(":")[0] for run in RUNS.values() for place in run.values()}
    elsewhere = {"half_snapshot", "after_snapshot", *PLACES}
    assert here | elsewhere == set(NAMES)


def test_a_place_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no place of that name"):
        Failpoints("befor_send:1")


class Died(BaseException):
    """Stands for the end of the process."""


class Dying(Failpoints):
    def die(self) -> None:
        raise Died


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Snapshots[int]]:
    yield Snapshots(tmp_path, "admission", 0, "s1")


@pytest.mark.parametrize(("place", "expected"), [("half_snapshot", 1), ("after_snapshot", 2)])
def test_a_death_at_a_snapshot_leaves_the_old_one_or_the_new_one(
    store: Snapshots[int], place: str, expected: int
) -> None:
    store.store(1, store.pack(Cursor(1, 1, "a"), 1))
    with patch.object(snapshots_module, "FAILPOINTS", Dying(place)), pytest.raises(Died):
        store.store(2, store.pack(Cursor(2, 2, "b"), 2))
    loaded = store.load()
    assert loaded is not None
    assert (loaded.state, loaded.cursor.seq) == (expected, expected)
