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
from shared.bus.logs.memory import MemoryLog
from simulator.engine.candidate import PRESENT, run_trial
from simulator.engine.recording import dump, restore_broker
from simulator.engine.run import Simulation, simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.recorded.league import league_of
from simulator.recorded.pool import RecordedPool
from simulator.recorded.reading import UnknownPool, read_pool
from simulator.recorded.slice import InsufficientHistory, whole_past
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
    log = MemoryLog(restore_broker(ledgers, ["access", "placement"]))
    return asyncio.run(read_pool(log, RecordedPool(pool, most=1000, only_last=True)))


def test_a_ledger_gives_the_jobs_and_nodes_of_its_pool_back(ledgers: Path) -> None:
    part = whole_past(past(ledgers), 0.5, 1000)
    scenario = part.scenario
    assert len(scenario.jobs) == JOBS
    for own, replayed in zip(mixed(), scenario.jobs, strict=True):
        assert (replayed.tenant, replayed.gpus, replayed.workers) == (
            own.tenant,
            own.gpus,
            own.workers,
        )
        assert replayed.submit_s == pytest.approx(own.submit_s, abs=1.0)
        assert replayed.duration_s == pytest.approx(own.duration_s, abs=1.0)
    assert scenario.capacity_gpus == 16
    assert scenario.restart_s == 60.0
    assert {job.checkpoint_interval_s for job in scenario.jobs} == {300.0}
    assert part.left_out == {}


def test_only_the_last_jobs_are_played(ledgers: Path) -> None:
    assert len(whole_past(past(ledgers), 0.5, 25).jobs) == 25


def test_a_pool_without_history_in_the_ledger_is_an_error(ledgers: Path) -> None:
    with pytest.raises(UnknownPool, match="pool: 'other', must be one that the ledger knows"):
        past(ledgers, "other")
    few = past(ledgers)
    few.jobs = dict(list(few.jobs.items())[:3])
    with pytest.raises(InsufficientHistory, match="ended jobs: 3, nodes: "):
        whole_past(few, 0.5, 1000)


def test_the_base_alone_is_as_it_was_and_rank_makes_room_for_short_jobs(ledgers: Path) -> None:
    part = whole_past(past(ledgers), 1.0, 1000)
    by_rank = ("gittins, preemption by rank", "learned, preemption by rank")
    results = {
        candidate.name: run_trial(part.scenario, candidate)
        for candidate in league_of(part).candidates
        if candidate.name in (PRESENT, *by_rank)
    }
    done, _ = recorded()
    outcome = done.outcome
    base = results[PRESENT]
    delay_s = (outcome.jct_s - outcome.duration_s)[outcome.in_window].mean()
    assert base.mean_wait_s == pytest.approx(float(delay_s), rel=0.01)
    for name in by_rank:
        assert results[name].preemptions > 0
        assert results[name].mean_wait_s < base.mean_wait_s


def test_the_command_shows_every_candidate_and_names_the_best(ledgers: Path) -> None:
    arguments = ["validate", POOL, "--ledgers", str(ledgers), "--last-share", "1", "--json"]
    invoked = CliRunner().invoke(app, arguments)
    assert invoked.exit_code == 0, invoked.output
    output = json.loads(invoked.stdout)
    names = [candidate["candidate"]["name"] for candidate in output["tried"]]
    assert names[0] == PRESENT and {"sjf", "las, preemption by rank", "learned"} <= set(names)
    assert "priority_class" in output["left_out"]
    in_rounds = {trial["candidate"]["name"] for trial in output["in_rounds"]}
    assert "tiresias, in rounds" in in_rounds and "pollux, in rounds" in output["left_out"]
    waits = [candidate["mean_wait_s"] for candidate in output["tried"]]
    low, high = output["tried"][1]["comparison"]["interval"]
    assert low < waits[1] / waits[0] - 1 < high
    assert output["chosen"]["name"] in names and output["reason"]
    assert not output["applied"]
    wrong = CliRunner().invoke(app, ["validate", "other", "--ledgers", str(ledgers)])
    assert wrong.exit_code != 0
