"""A pool's ledger is played again under other settings before one of them is switched on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from cli.main import app
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.pools import PoolConfigured
from shared.contracts.settings_version import version_of
from simulator.engine.candidate import PRESENT, candidates, run_trial, update_command
from simulator.engine.recorded import (
    LEDGER,
    InsufficientHistory,
    RecordedPool,
    build_scenario,
    read_pool,
)
from simulator.engine.recording import dump, restore_broker
from simulator.engine.run import Simulation, simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.workload.rows import WorkloadJob

pytestmark = pytest.mark.slow

JOBS = 60


def mixed() -> Iterator[WorkloadJob]:
    """A long job of the whole pool now and then, and many short ones of another tenant behind."""
    draw = Random(4)
    for n in range(JOBS):
        long = n % 10 == 0
        tenant, gpus, run_s = ("red", 8.0, 9_000.0) if long else ("blue", 1.0, 300.0)
        yield WorkloadJob(
            f"k{n:03d}",
            tenant,
            f"{tenant}-1",
            "train",
            400.0 * n,
            run_s + draw.randrange(60),
            1,
            gpus,
            None,
            1,
            1,
            True,
        )


def recorded() -> tuple[Simulation, list[WorkloadJob]]:
    jobs = list(mixed())
    pool = simulated_pool(time_scale=60.0, base_policy="fcfs", runtime="history", queue_mode="skip")
    scenario = Scenario(
        jobs=jobs,
        nodes=equal_nodes(2, pool=POOL),
        pool=pool,
        window_s=window_of(jobs, 1.0),
        restart_s=60.0,
        checkpoint_s=300.0,
    )
    return simulate(scenario, ledgers=True), jobs


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledgers")
    done, _ = recorded()
    assert done.broker is not None
    dump(done.broker, folder)
    return folder


def past(ledgers: Path, pool: str = POOL) -> RecordedPool:
    return asyncio.run(read_pool(MemoryLog(restore_broker(ledgers, ["priority"])), 1, pool))


def test_a_ledger_gives_the_jobs_and_nodes_of_its_pool_back(ledgers: Path) -> None:
    scenario = build_scenario(past(ledgers), 0.5, 1000)
    first = 0.0
    assert len(scenario.jobs) == JOBS
    for own, replayed in zip(mixed(), scenario.jobs, strict=True):
        assert (replayed.tenant, replayed.gpus, replayed.workers) == (
            own.tenant,
            own.gpus,
            own.workers,
        )
        assert replayed.submit_s == pytest.approx(own.submit_s - first, abs=1.0)
        assert replayed.duration_s == pytest.approx(own.duration_s, abs=1.0)
    assert scenario.capacity_gpus == 16
    assert scenario.restart_s == 60.0
    assert {job.checkpoint_interval_s for job in scenario.jobs} == {300.0}
    assert past(ledgers).unended == 0


def test_the_time_of_a_change_of_policy_is_known_and_the_first_settings_are_none() -> None:
    first = simulated_pool(base_policy="fcfs")
    other_rate = first.model_copy(update={"rank_ms": 9})
    other_policy = other_rate.model_copy(update={"base_policy": "sjf"})

    def changed_at(*settings: PoolConfigured) -> int | None:
        broker = MemoryBroker()
        writer = LedgerWriter(broker, LEDGER)
        for at, one in enumerate(settings):
            writer.write([one], at=at)
        return asyncio.run(read_pool(MemoryLog(broker), 1, POOL)).policy_changed_at

    assert changed_at(first, other_rate) is None
    assert changed_at(first, other_rate, other_policy, other_policy) == 2


def test_only_the_last_jobs_are_played(ledgers: Path) -> None:
    assert len(build_scenario(past(ledgers), 0.5, 25).jobs) == 25


def test_a_pool_without_history_in_the_ledger_is_an_error(ledgers: Path) -> None:
    with pytest.raises(
        InsufficientHistory, match="pool: 'other', must be one that the ledger knows"
    ):
        build_scenario(past(ledgers, "other"), 0.5, 1000)
    few = past(ledgers)
    few.finished = dict(list(few.finished.items())[:3])
    assert few.unended == JOBS - 3
    with pytest.raises(InsufficientHistory, match="3 jobs that ran to their end"):
        build_scenario(few, 0.5, 1000)


def test_the_base_alone_is_as_it_was_and_rank_makes_room_for_short_jobs(ledgers: Path) -> None:
    scenario = build_scenario(past(ledgers), 1.0, 1000)
    results = {
        candidate.name: run_trial(scenario, candidate) for candidate in candidates(scenario.pool)
    }
    done, _ = recorded()
    outcome = done.outcome
    base = results[PRESENT]
    delay_s = (outcome.jct_s - outcome.duration_s)[outcome.in_window].mean()
    assert base.mean_wait_s == pytest.approx(float(delay_s), rel=0.01)
    for name in ("gittins, preemption by rank", "learned, preemption by rank"):
        assert results[name].preemptions > 0
        assert results[name].mean_wait_s < base.mean_wait_s


def test_the_command_sets_the_tried_settings_and_no_others() -> None:
    pool = PoolConfigured(
        partition=3,
        pool="p",
        base_policy="wfp3",
        learned="berth",
        preemption="ranked",
        runtime="user",
        rank_ms=77,
        reserve_after_s=9.0,
    )
    *_, base = candidates(pool)
    assert base.name == "wfp3"
    update = update_command(pool, base)
    assert update.if_version == version_of(pool)
    assert set(update.changes()) == set(base.settings)
    assert (update.changes()["learned"], update.changes()["preemption"]) == (None, "class")
    blind = [one for one in candidates(pool) if one.settings.get("base_policy") == "las"]
    assert blind, "gittins would look at history"


def test_the_present_settings_are_a_candidate_once_and_the_first() -> None:
    pool = PoolConfigured(partition=3, pool="p", base_policy="wfp3", runtime="history")
    names = [one.name for one in candidates(pool)]
    assert names == [
        PRESENT,
        "gittins, preemption by rank",
        "learned, preemption by rank",
        "learned",
    ]
    *_, learned = candidates(pool)
    changed = pool.model_copy(update=learned.settings)
    assert [one.name for one in candidates(changed)] == [
        PRESENT,
        "gittins, preemption by rank",
        "learned, preemption by rank",
        "wfp3",
    ]


def test_the_command_shows_every_candidate_and_names_the_best(ledgers: Path) -> None:
    arguments = ["validate", POOL, "--ledgers", str(ledgers), "--last-share", "1", "--json"]
    invoked = CliRunner().invoke(app, arguments)
    assert invoked.exit_code == 0, invoked.output
    output = json.loads(invoked.stdout)
    names = [candidate["candidate"]["name"] for candidate in output["tried"]]
    assert names[0] == PRESENT and len(names) == 4
    waits = [candidate["mean_wait_s"] for candidate in output["tried"]]
    low, high = output["tried"][1]["comparison"]["interval"]
    assert low < waits[1] / waits[0] - 1 < high
    assert output["chosen"]["name"] in names and output["reason"]
    assert not output["applied"]
    assert "WAIT CHANGE" in CliRunner().invoke(app, arguments[:-1]).stdout
    wrong = CliRunner().invoke(app, ["validate", "other", "--ledgers", str(ledgers)])
    assert wrong.exit_code != 0
