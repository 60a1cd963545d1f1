"""`berth validate POOL`: compare policies on the pool's own recorded past."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.api.answers import api, await_answer
from cli.api.http import part
from cli.api.target import data_dir
from cli.errors import BadInput
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, lines, report_line, table

if TYPE_CHECKING:
    from simulator.engine.candidate import TrialCandidate, TrialResult
    from simulator.engine.policy_change import Choice
    from simulator.engine.recorded import RecordedPool


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
            min=0,
            max=1,
            help="Share by which the mean wait must be shorter than under the present settings, "
            "beyond chance, for another policy.",
        ),
    ] = 0.05,
    pause_h: Annotated[
        float, typer.Option(min=0, help="Hours between two changes of the pool's policy.")
    ] = 24.0,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply the recommended policy to the pool.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Replay a pool's recorded past under several policies and recommend one.

    Another policy is recommended only where its waits are shorter beyond chance, and once in
    --pause-h hours at most: --apply may run from a timer.
    """
    from simulator.engine.candidate import candidates, run_trial
    from simulator.engine.policy_change import change_reason, choose_trial
    from simulator.engine.recorded import InsufficientHistory, build_scenario

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
            report_line(f"playing {len(scenario.jobs)} jobs: {candidate.name}")
        trials.append(run_trial(scenario, candidate))
    changed_h = math.inf if ledgers is not None else hours_since_change(past, time.time())
    choice = choose_trial(trials, regret, hours_since_change=changed_h, pause_h=pause_h)
    applied = apply and choice.index > 0
    if applied:
        best = trials[choice.index]
        _apply(past, best.candidate, change_reason(trials[0], best, choice), data)
    _show(past, trials, choice, applied, as_json)


def hours_since_change(past: RecordedPool, now_s: float) -> float:
    """Return wall hours since the pool's policy was changed; infinity if it never was."""
    if past.policy_changed_at is None:
        return math.inf
    return max(0.0, now_s - past.policy_changed_at / 1000) / 3600


async def _past(pool: str, ledgers: Path | None, data: Path | None) -> RecordedPool:
    from infra.supervisor.running import load
    from shared.bus.archive.opening import with_archive
    from shared.bus.logs.kafka import KafkaLog
    from shared.bus.logs.memory import MemoryLog
    from simulator.engine.recorded import LEDGER, read_pool
    from simulator.engine.recording import restore_broker

    if ledgers is None:
        stack = load(data_dir(data))
        return await read_pool(
            with_archive(KafkaLog(stack.connection("verify")), stack.archive),
            stack.partitions,
            pool,
        )
    try:
        broker = restore_broker(ledgers, [LEDGER])
    except OSError as error:
        raise BadInput(f"--ledgers: {error}") from None
    return await read_pool(MemoryLog(broker), 1, pool)


def _apply(past: RecordedPool, best: TrialCandidate, reason: str, data: Path | None) -> None:
    """Apply the recommended settings to the pool; other settings stay, the reason is recorded."""
    from simulator.engine.candidate import update_command

    assert past.pool is not None, "a scenario was made of it"
    client = api(data)
    body = update_command(past.pool, best, reason).model_dump(mode="json", exclude_unset=True)
    await_answer(client, client.patch(f"/v1/pools/{part(past.pool.pool)}", body))


def _show(
    past: RecordedPool, trials: list[TrialResult], choice: Choice, applied: bool, as_json: bool
) -> None:
    chosen = trials[choice.index].candidate
    comparisons = (None, *choice.comparisons)
    if as_json:
        document: dict[str, Any] = {
            "pool": past.name,
            "unended": past.unended,
            "tried": [
                trial.figures() | {"comparison": comparison and asdict(comparison)}
                for trial, comparison in zip(trials, comparisons, strict=True)
            ],
            "chosen": asdict(chosen),
            "reason": choice.reason,
            "applied": applied,
        }
        emit(document)
        return
    columns = ("SETTINGS", "WAIT S", "P99 S", "JCT S", "USE", "STOPS", "WAIT CHANGE", "BEST")
    rows = (
        (
            trial.candidate.name,
            f"{trial.mean_wait_s:,.1f}",
            f"{trial.p99_wait_s:,.1f}",
            f"{trial.mean_jct_s:,.1f}",
            f"{trial.utilisation:.1%}",
            trial.preemptions,
            comparison.text if comparison else "",
            "*" if index == choice.index else "",
        )
        for index, (trial, comparison) in enumerate(zip(trials, comparisons, strict=True))
    )
    table(columns, rows)
    lines([f"{trials[0].jobs} jobs counted; {past.unended} had not ended and were left out"])
    settings = ", ".join(f"{name} {value}" for name, value in chosen.settings.items())
    if choice.index:
        lines([f"{'set' if applied else 'to set'}: {settings} ({choice.reason})"])
    else:
        lines([f"stays: {settings} ({choice.reason})"])
