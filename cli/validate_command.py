"""`berth validate POOL`: compare policies on the pool's own recorded past."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.answers import api, await_answer
from cli.arguments import AsJson, Data
from cli.errors import BadInput
from cli.output import emit, lines, say, table
from cli.target import data_dir

if TYPE_CHECKING:
    from simulator.engine.recorded import RecordedPool
    from simulator.engine.trial import TrialResult


def validate(
    pool: Annotated[str, typer.Argument(help="Pool.", metavar="POOL")],
    ledgers: Annotated[
        Path | None,
        typer.Option(help="Directory of `berth simulate --out`; defaults to the log of the stack."),
    ] = None,
    last_share: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Share of the recorded time that is evaluated.")
    ] = 0.5,
    jobs: Annotated[
        int, typer.Option(min=20, help="Maximum number of jobs, from the last.")
    ] = 5_000,
    regret: Annotated[
        float,
        typer.Option(
            min=0, help="Improvement over the current policy required to recommend another."
        ),
    ] = 0.05,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply the recommended policy to the pool.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Replay a pool's recorded past under several policies and recommend one."""
    from simulator.engine.recorded import InsufficientHistory, build_scenario
    from simulator.engine.trial import candidates, choose_candidate, run_trial

    if apply and ledgers is not None:
        raise BadInput("--apply cannot be combined with --ledgers")
    past = asyncio.run(_past(pool, ledgers, data))
    try:
        scenario = build_scenario(past, last_share, jobs)
    except InsufficientHistory as error:
        raise BadInput(str(error)) from None
    trials: list[TrialResult] = []
    for candidate in candidates(scenario.pool):
        if not as_json:
            say(f"playing {len(scenario.jobs)} jobs: {candidate.name}")
        trials.append(run_trial(scenario, candidate))
    best = trials[choose_candidate([trial.mean_wait_s for trial in trials], regret)]
    if apply:
        _apply(past, best, data)
    _show(past, trials, best, apply, as_json)


async def _past(pool: str, ledgers: Path | None, data: Path | None) -> RecordedPool:
    from infra.supervisor.running import load
    from shared.bus.kafka import KafkaLog
    from shared.bus.memory import MemoryLog
    from simulator.engine.recorded import LEDGER, read_pool
    from simulator.engine.recording import restore_broker

    if ledgers is None:
        stack = load(data_dir(data))
        return await read_pool(KafkaLog(stack.connection("verify")), stack.partitions, pool)
    try:
        broker = restore_broker(ledgers, [LEDGER])
    except OSError as error:
        raise BadInput(f"--ledgers: {error}") from None
    return await read_pool(MemoryLog(broker), 1, pool)


def _apply(past: RecordedPool, best: TrialResult, data: Path | None) -> None:
    """Apply the recommended settings to the pool; other settings stay."""
    from simulator.engine.trial import configure_command

    assert past.pool is not None, "a scenario was made of it"
    client = api(data)
    body = configure_command(past.pool, best.candidate).model_dump(mode="json", exclude_none=True)
    await_answer(client, client.post("/v1/pools", body))


def _show(
    past: RecordedPool, trials: list[TrialResult], best: TrialResult, applied: bool, as_json: bool
) -> None:
    from dataclasses import asdict

    if as_json:
        document: dict[str, Any] = {
            "pool": past.name,
            "unended": past.unended,
            "tried": [asdict(trial) for trial in trials],
            "chosen": asdict(best.candidate),
            "applied": applied,
        }
        emit(document)
        return
    columns = ("SETTINGS", "WAIT S", "P99 S", "JCT S", "USE", "STOPS", "BEST")
    rows = (
        (
            trial.candidate.name,
            f"{trial.mean_wait_s:,.1f}",
            f"{trial.p99_wait_s:,.1f}",
            f"{trial.mean_jct_s:,.1f}",
            f"{trial.utilisation:.1%}",
            trial.preemptions,
            "*" if trial is best else "",
        )
        for trial in trials
    )
    table(columns, rows)
    lines([f"{trials[0].jobs} jobs counted; {past.unended} had not ended and were left out"])
    settings = ", ".join(f"{name} {value}" for name, value in best.candidate.settings.items())
    lines([f"{'set' if applied else 'to set'}: {settings}"])
