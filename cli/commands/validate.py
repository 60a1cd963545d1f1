"""`berth validate POOL`: compare policies on the pool's own recorded past."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cli.api.answers import api, await_answer
from cli.api.http import part
from cli.errors import BadInput
from cli.input.arguments import AsJson, Data
from cli.stack.ledger_log import open_ledgers
from cli.text.output import emit, lines, report_line, table

if TYPE_CHECKING:
    from simulator.engine.candidate import TrialCandidate, TrialResult
    from simulator.engine.policy_change import Choice
    from simulator.recorded.league import League
    from simulator.recorded.pool import RecordedPool
    from simulator.recorded.slice import RecordedSlice


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
    from simulator.engine.candidate import run_trial
    from simulator.engine.policy_change import change_reason, choose_trial
    from simulator.recorded.league import league_of
    from simulator.recorded.slice import InsufficientHistory, whole_past

    if apply and ledgers is not None:
        raise BadInput("--apply cannot be combined with --ledgers")
    past = _past(pool, ledgers, jobs, data)
    try:
        part = whole_past(past, last_share, jobs)
    except InsufficientHistory as error:
        raise BadInput(str(error)) from None
    league = league_of(part)
    trials: list[TrialResult] = []
    for candidate in league.candidates:
        if not as_json:
            report_line(f"playing {len(part.jobs)} jobs: {candidate.name}")
        trials.append(run_trial(part.scenario, candidate))
    others = [_in_rounds(part, name, as_json) for name in league.schedulers]
    changed_h = math.inf if ledgers is not None else hours_since_change(past, time.time())
    choice = choose_trial(trials, regret, hours_since_change=changed_h, pause_h=pause_h)
    applied = apply and choice.index > 0
    if applied:
        best = trials[choice.index]
        _apply(past, best.candidate, change_reason(trials[0], best, choice), data)
    shown = Validation(part, league, trials, others, choice, applied)
    if as_json:
        emit(_document(shown))
    else:
        _show(shown)


def hours_since_change(past: RecordedPool, now_s: float) -> float:
    """Return wall hours since the pool's policy was changed; infinity if it never was."""
    if past.policy_changed_at is None:
        return math.inf
    return max(0.0, now_s - past.policy_changed_at / 1000) / 3600


def _past(pool: str, ledgers: Path | None, most: int, data: Path | None) -> RecordedPool:
    from simulator.recorded.pool import RecordedPool
    from simulator.recorded.reading import UnknownPool, read_pool

    past = RecordedPool(pool, most=most, only_last=True)
    try:
        return asyncio.run(read_pool(open_ledgers(ledgers, data).log, past))
    except UnknownPool as error:
        raise BadInput(str(error)) from None


def _apply(past: RecordedPool, best: TrialCandidate, reason: str, data: Path | None) -> None:
    """Apply the recommended settings to the pool; other settings stay, the reason is recorded."""
    from simulator.engine.candidate import update_command

    assert past.pool is not None, "a scenario was made of it"
    client = api(data)
    body = update_command(past.pool, best, reason).model_dump(mode="json", exclude_unset=True)
    await_answer(client, client.patch(f"/v1/pools/{part(past.pool.pool)}", body))


def _in_rounds(part: RecordedSlice, scheduler: str, as_json: bool) -> TrialResult:
    """Return the trial of a scheduler in the world of rounds: it is shown, never chosen."""
    from simulator.engine.candidate import TrialCandidate, trial_of
    from simulator.recorded.league import ROUNDS
    from simulator.recorded.rounds import play_in_rounds

    candidate = TrialCandidate(f"{scheduler}, {ROUNDS}", {})
    if not as_json:
        report_line(f"playing {len(part.jobs)} jobs: {candidate.name}")
    return trial_of(candidate, part.scenario, play_in_rounds(part, scheduler))


class Validation(NamedTuple):
    """The results of a validation."""

    part: RecordedSlice
    league: League
    trials: list[TrialResult]
    in_rounds: list[TrialResult]
    choice: Choice
    applied: bool


def _document(shown: Validation) -> dict[str, Any]:
    part, choice = shown.part, shown.choice
    comparisons = (None, *choice.comparisons)
    return {
        "pool": part.past.name,
        "unended": sum(part.left_out.values()),
        "left_out_jobs": part.left_out,
        "tried": [
            trial.figures() | {"comparison": comparison and asdict(comparison)}
            for trial, comparison in zip(shown.trials, comparisons, strict=True)
        ],
        "in_rounds": [trial.figures() for trial in shown.in_rounds],
        "left_out": shown.league.left_out,
        "chosen": asdict(shown.trials[choice.index].candidate),
        "reason": choice.reason,
        "applied": shown.applied,
    }


def _show(shown: Validation) -> None:
    choice, trials = shown.choice, shown.trials
    columns = ("SETTINGS", "WAIT S", "P99 S", "JCT S", "USE", "STOPS", "WAIT CHANGE", "BEST")
    texts = ["", *(comparison.text for comparison in choice.comparisons)]
    rows = [
        _cells(trial, text, "*" if index == choice.index else "")
        for index, (trial, text) in enumerate(zip(trials, texts, strict=True))
    ]
    table(columns, [*rows, *(_cells(trial, "a world of its own") for trial in shown.in_rounds)])
    left_out = ", ".join(f"{count} {reason}" for reason, count in shown.part.left_out.items())
    lines([f"{trials[0].jobs} jobs counted; left out: {left_out or 'none'}"])
    lines(f"not tried: {name}: {reason}" for name, reason in shown.league.left_out.items())
    chosen = trials[choice.index].candidate
    settings = ", ".join(f"{name} {value}" for name, value in chosen.settings.items())
    if choice.index:
        lines([f"{'set' if shown.applied else 'to set'}: {settings} ({choice.reason})"])
    else:
        lines([f"stays: {settings} ({choice.reason})"])


def _cells(trial: TrialResult, change: str, mark: str = "") -> tuple[object, ...]:
    return (
        trial.candidate.name,
        f"{trial.mean_wait_s:,.1f}",
        f"{trial.p99_wait_s:,.1f}",
        f"{trial.mean_jct_s:,.1f}",
        f"{trial.utilisation:.1%}" if trial.utilisation else "-",
        trial.preemptions,
        change,
        mark,
    )
