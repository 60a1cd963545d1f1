"""Recorded ledgers: the same inputs lead to the same decisions, in any process."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shared.bus.logs.memory import MemoryLog
from shared.contracts.base import EVENTS
from shared.contracts.topics import LEDGERS
from shared.ledger.decider import Decider
from shared.ledger.partition import TP
from shared.ledger.reader import Reader
from shared.verify.reading import InstallationLog
from shared.verify.run import verify
from tests.patience import PATIENCE_S
from tests.replay.again import replayed
from tests.replay.cluster import DECIDERS, LANE, Cluster
from tests.replay.golden import FOLDER, path_of, read, state_hash, write
from tests.replay.workload import JOBS, played

ROOT = Path(__file__).parents[2]
LIMIT_BYTES = 300_000
SEEDS = ("1", "4242")
NOT_RUN = {"events hold what the ledgers say", "dead letters equal what was rejected"}
"""Rules about the publisher, which does not run here."""
each_decider = pytest.mark.parametrize("decider", DECIDERS, ids=lambda decider: decider.ledger)


@pytest.fixture(scope="module")
def day() -> Cluster:
    return played()


def python(seed: str, *arguments: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": seed}
    run = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        run, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize("seed", SEEDS)
def test_recorded_inputs_lead_to_the_recorded_decisions_under_any_hash_seed(seed: str) -> None:
    results = json.loads(python(seed, "tests.replay.again"))
    assert set(results) == {"admission", "priority", "placement"}
    for ledger, result in results.items():
        assert "differs" not in result, f"{ledger}: {result['differs']}"
        assert result["same_state"], f"the state of {ledger} has another shape or content"
        assert result["calls"] > JOBS


@each_decider
def test_the_fold_of_a_recorded_ledger_is_the_recorded_state(decider: type[Decider[Any]]) -> None:
    fresh = decider()
    calls, recorded = read(path_of(fresh.ledger))
    state = fresh.initial(LANE)
    for call in calls:
        for fact in call.facts(fresh.ledger):
            fresh.evolve(state, fact)
    assert state_hash(state) == recorded


@each_decider
def test_a_decision_that_changes_is_detected(decider: type[Decider[Any]]) -> None:
    class Forgetful(decider):  # type: ignore[misc, valid-type]
        def decide(self, state: Any, inputs: Any, now: int) -> Any:
            return super().decide(state, inputs[:-1], now)

    assert "differs" in replayed(Forgetful())


def test_the_recorded_day_has_everything_that_may_happen_to_a_job() -> None:
    seen: Counter[str] = Counter()
    for decider in DECIDERS:
        calls, _ = read(path_of(decider().ledger))
        seen.update(decision.event.TYPE for call in calls for decision in call.decisions)
    wanted = {name for name in EVENTS if name.startswith("job.")} | {"node.lost.v1"}
    # Virtual workers report neither checkpoints nor progress.
    silent = {"job.checkpointed.v1", "job.progressed.v1"}
    # The pool has not finished its upgrade.
    gated = {"job.stop-deferred.v1", "job.transfer-requested.v1"}
    assert wanted - seen.keys() == {"job.start-failed.v1", *silent, *gated}


def test_the_golden_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < LIMIT_BYTES


@pytest.mark.process
def test_a_day_is_the_same_under_any_hash_seed(tmp_path: Path) -> None:
    digests = set()
    for seed in SEEDS:
        python(seed, "tests.replay.record", str(tmp_path / seed))
        files = sorted((tmp_path / seed).iterdir())
        digests.add(hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest())
    assert len(digests) == 1


def test_what_is_recorded_is_read_back_as_it_was(day: Cluster, tmp_path: Path) -> None:
    for ledger, cell in day.lanes.items():
        write(tmp_path / ledger, cell.calls, cell.state)
        calls, _ = read(tmp_path / ledger)
        assert calls == cell.calls


async def test_the_day_breaks_no_rule_of_verify(day: Cluster) -> None:
    report = await verify(
        InstallationLog(MemoryLog(day.broker), 1, quiet_s=0.0, catch_up_s=0.0), None
    )
    violations = [v for v in report.violations if v.rule not in NOT_RUN]
    assert violations == []
    assert set(report.rules) >= NOT_RUN
    assert report.counts["commands"] > JOBS


def test_the_day_ends_with_nothing_left_to_do(day: Cluster) -> None:
    assert day.lanes["placement"].state.jobs == {}
    assert day.lanes["admission"].state.deferred == {}
    for ledger in day.lanes:
        reader = Reader(ledger, LANE)
        assert ledger in LEDGERS
        for entry in day.broker.entries(TP(ledger, LANE)):
            assert reader.offer(entry.offset, entry.value), "a record of the day does not count"
