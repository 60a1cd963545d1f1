"""`berth validate POOL`: how else its own past would have gone, before anything is switched on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.arguments import AsJson, Data
from cli.calls import answered, api
from cli.errors import BadInput
from cli.output import emit, lines, say, table
from cli.target import data_dir

if TYPE_CHECKING:
    from simulator.engine.recorded import RecordedPool
    from simulator.engine.trial import TrialResult


def validate(
    pool: Annotated[str, typer.Argument(help="The pool.", metavar="POOL")],
    ledgers: Annotated[
        Path | None,
        typer.Option(help="Folder of `berth simulate --out`; default: the stack's own log."),
    ] = None,
    last_share: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Part of the time that is judged.")
    ] = 0.5,
    jobs: Annotated[int, typer.Option(min=20, help="At most so many, the last ones.")] = 5_000,
    regret: Annotated[
        float, typer.Option(min=0, help="By how much another must be better than the first.")
    ] = 0.05,
    apply: Annotated[bool, typer.Option("--apply", help="Set the pool to what is best.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Play a pool's recorded past again: learned, ranked preemption, its base; say which to run."""
    from simulator.engine.recorded import InsufficientHistory, build_scenario
    from simulator.engine.trial import candidates, choose_candidate, run_trial

    if apply and ledgers is not None:
        raise BadInput("--apply: is for a pool of the stack, not for --ledgers")
    past = asyncio.run(_past(pool, ledgers, data))
    try:
        scenario = build_scenario(past, last_share, jobs)
    except InsufficientHistory as error:
        raise BadInput(str(error)) from None
    found: list[TrialResult] = []
    for candidate in candidates(scenario.pool):
        if not as_json:
            say(f"playing {len(scenario.jobs)} jobs: {candidate.name}")
        found.append(run_trial(scenario, candidate))
    best = found[choose_candidate([each.mean_wait_s for each in found], regret)]
    if apply:
        _apply(past, best, data)
    _show(past, found, best, apply, as_json)


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
    """By the command that an operator would send; what is not tried stays as it is."""
    from simulator.engine.trial import configure_command

    assert past.pool is not None, "a scenario was made of it"
    client = api(data)
    body = configure_command(past.pool, best.candidate).model_dump(mode="json", exclude_none=True)
    answered(client, client.post("/v1/pools", body))


def _show(
    past: RecordedPool, found: list[TrialResult], best: TrialResult, applied: bool, as_json: bool
) -> None:
    from dataclasses import asdict

    if as_json:
        told: dict[str, Any] = {
            "pool": past.name,
            "unended": past.unended,
            "tried": [asdict(each) for each in found],
            "chosen": asdict(best.candidate),
            "applied": applied,
        }
        emit(told)
        return
    columns = ("SETTINGS", "WAIT S", "P99 S", "JCT S", "USE", "STOPS", "BEST")
    rows = (
        (
            each.candidate.name,
            f"{each.mean_wait_s:,.1f}",
            f"{each.p99_wait_s:,.1f}",
            f"{each.mean_jct_s:,.1f}",
            f"{each.utilisation:.1%}",
            each.preemptions,
            "*" if each is best else "",
        )
        for each in found
    )
    table(columns, rows)
    lines([f"{found[0].jobs} jobs counted; {past.unended} had not ended and were left out"])
    settings = ", ".join(f"{name} {value}" for name, value in best.candidate.settings.items())
    lines([f"{'set' if applied else 'to set'}: {settings}"])
