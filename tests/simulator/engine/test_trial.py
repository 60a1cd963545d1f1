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
from shared.bus.memory import MemoryLog
from shared.contracts.access import ConfigurePool, PoolConfigured
from simulator.engine.recorded import InsufficientHistory, RecordedPool, build_scenario, read_pool
from simulator.engine.recording import dump, restore_broker
from simulator.engine.run import Simulation, simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.engine.trial import candidates, choose_candidate, configure_command, run_trial
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
    assert (scenario.restart_s, scenario.checkpoint_s) == (60.0, 300.0)
    assert past(ledgers).unended == 0


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
    base = results["fcfs"]
    delay_s = (outcome.jct_s - outcome.duration_s)[outcome.in_window].mean()
    assert base.mean_wait_s == pytest.approx(float(delay_s), rel=0.01)
    learned = results["learned, preemption by rank"]
    assert learned.preemptions > 0
    assert learned.mean_wait_s < base.mean_wait_s


@pytest.mark.parametrize(
    ("waits", "best"),
    [([10, 9.9, 12], 0), ([10, 9.4, 9.3], 2), ([10, 30, 40], 0), ([0, 0, 0], 0), ([5, 0, 9], 1)],
)
def test_the_first_is_taken_unless_the_past_shows_regret(waits: list[float], best: int) -> None:
    assert choose_candidate(waits, 0.05) == best


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
    assert configure_command(pool, base) == ConfigurePool(
        **pool.model_dump(exclude={"partition", "learned", "preemption"})
    )
    ranked = candidates(pool)[1]
    assert ranked.settings["base_policy"] == "las", "gittins would look at history"


def test_the_command_shows_every_candidate_and_names_the_best(ledgers: Path) -> None:
    arguments = ["validate", POOL, "--ledgers", str(ledgers), "--last-share", "1", "--json"]
    invoked = CliRunner().invoke(app, arguments)
    assert invoked.exit_code == 0, invoked.output
    output = json.loads(invoked.stdout)
    names = [candidate["candidate"]["name"] for candidate in output["tried"]]
    assert len(names) == 4
    waits = [candidate["mean_wait_s"] for candidate in output["tried"]]
    assert output["chosen"]["name"] == names[choose_candidate(waits)]
    assert not output["applied"]
    wrong = CliRunner().invoke(app, ["validate", "other", "--ledgers", str(ledgers)])
    assert wrong.exit_code != 0
