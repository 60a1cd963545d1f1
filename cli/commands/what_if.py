"""`berth what-if`: a recorded part of a pool's past under other policies."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cli.errors import BadInput, CliError
from cli.input.arguments import AsJson, Data
from cli.input.moments import parse_moment_ms
from cli.stack.ledger_log import LedgerLog, open_ledgers
from cli.text.output import emit, lines, report_line, table
from cli.text.what_if import IN_ROUNDS, notes, policy_table, tenant_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.process.progress import ReportLine
    from simulator.engine.candidate import TrialCandidate
    from simulator.recorded.pool import RecordedPool
    from simulator.recorded.reading import ShadowRecord
    from simulator.recorded.slice import RecordedSlice

ALL = "all"


class Chosen(NamedTuple):
    """Policies to simulate, schedulers of rounds, and why others are left out."""

    policies: list[TrialCandidate]
    schedulers: list[str]
    left_out: dict[str, str]


def what_if(
    pool: Annotated[str, typer.Option(help="Pool.")],
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            help="Begin of the arrivals to count: a moment such as 2026-11-01T08:30, UTC, or how "
            "long before --to, such as 7d.",
        ),
    ] = "7d",
    end: Annotated[
        str | None,
        typer.Option("--to", help="Their end: a moment, or how long ago; defaults to the last."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Repeatable: a base policy, learned:NAME or rounds:SCHEDULER, with pool settings "
            "behind it, as in gittins,preemption=ranked; `all` for every one that the jobs have "
            "data for. Defaults to the shadows that ranked in this time, else to `all`."
        ),
    ] = None,
    warm_up: Annotated[
        str | None,
        typer.Option(
            help="How long before --from the replay begins; defaults to as long as it is counted."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Maximum number of jobs that are held in memory.")
    ] = 20_000,
    svg: Annotated[Path | None, typer.Option(help="File for a plot.")] = None,
    ledgers: Annotated[
        Path | None,
        typer.Option(help="Directory of `berth simulate --out`; defaults to the log of the stack."),
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Simulate a recorded part of a pool's past under other policies.

    Jobs arrive when they entered the queue, with the gangs, classes and run times that they had;
    nodes come, leave and are cordoned as they were. The ledger is only read. First it is shown how
    closely the replay of the recorded settings has the recorded waits.
    """
    from simulator.recorded.document import document_of
    from simulator.recorded.what_if import play

    log = open_ledgers(ledgers, data)
    report = (lambda line: None) if as_json else report_line
    part, shadows = _read(log, _time(log, pool, begin, end, warm_up, jobs), report)
    chosen = _chosen(part, policy or _data_for(part, shadows) or [ALL])
    done = play(part, chosen.policies, chosen.schedulers, report)
    if svg is not None:
        from simulator.recorded.plot import draw

        try:
            draw(svg, done.rows)
        except OSError as error:
            raise CliError(f"--svg: {svg}: {error.strerror}") from None
    document = document_of(part, done, shadows, chosen.left_out)
    if as_json:
        emit(document)
        return
    lines(notes(document))
    for columns, rows in (policy_table(document), tenant_table(document)):
        lines([""])
        table(columns, rows)


def _time(
    log: LedgerLog, pool: str, begin: str, end: str | None, warm_up: str | None, jobs: int
) -> RecordedPool:
    """Return the past of the named time, still to be read. Raises BadInput."""
    from simulator.recorded.pool import RecordedPool

    to_ms = log.end_ms if end is None else parse_moment_ms("--to", end, log.end_ms)
    from_ms = parse_moment_ms("--from", begin, to_ms)
    if from_ms >= to_ms:
        raise BadInput("--from: must be before --to")
    begin_ms = 2 * from_ms - to_ms
    if warm_up is not None:
        begin_ms = parse_moment_ms("--warm-up", warm_up, from_ms)
    if begin_ms > from_ms:
        raise BadInput("--warm-up: must end at --from")
    return RecordedPool(pool, max(0, begin_ms), from_ms, to_ms, jobs)


def _read(
    log: LedgerLog, past: RecordedPool, report: ReportLine
) -> tuple[RecordedSlice, list[ShadowRecord]]:
    """Read the pool's past and the orders of its shadows. Raises BadInput."""
    from simulator.recorded.pool import TooManyJobs
    from simulator.recorded.reading import UnknownPool, read_pool, read_shadows
    from simulator.recorded.slice import InsufficientHistory, part_of_past

    async def read() -> tuple[RecordedSlice, list[ShadowRecord]]:
        part = part_of_past(await read_pool(log.log, past))
        return part, await read_shadows(log.log, past.name, past.from_ms, past.to_ms)

    report(f"reading the ledger of {past.name}")
    try:
        return asyncio.run(read())
    except (UnknownPool, TooManyJobs, InsufficientHistory) as error:
        raise BadInput(str(error)) from None


def _chosen(part: RecordedSlice, names: Sequence[str]) -> Chosen:
    """Return the policies of the arguments. Raises BadInput."""
    from simulator.engine.candidate import PRESENT
    from simulator.recorded.league import league_of, unmet_need

    chosen = Chosen([], [], {})
    for name in names:
        if name == ALL:
            league = league_of(part)
            chosen.policies.extend(one for one in league.candidates if one.name != PRESENT)
            chosen.schedulers.extend(league.schedulers)
            chosen.left_out.update(league.left_out)
        elif name.startswith(IN_ROUNDS):
            scheduler = name.removeprefix(IN_ROUNDS)
            if reason := unmet_need(part, _scheduler(scheduler)):
                raise BadInput(f"--policy {name}: {reason}")
            chosen.schedulers.append(scheduler)
        else:
            chosen.policies.append(_policy(part, name))
    return chosen


def _data_for(part: RecordedSlice, shadows: Sequence[ShadowRecord]) -> list[str]:
    """Return the shadows that can be simulated on the recorded jobs, where they are not named."""
    from shared.schedulers.registry import scheduler_classes
    from simulator.recorded.league import unmet_need

    def is_simulated(policy: str) -> bool:
        scheduler = policy.removeprefix(IN_ROUNDS)
        if scheduler == policy:
            return True
        return scheduler in scheduler_classes() and not unmet_need(part, scheduler)

    return [shadow.policy for shadow in shadows if is_simulated(shadow.policy)]


def _scheduler(name: str) -> str:
    """Return the name of a scheduler of rounds. Raises BadInput."""
    from shared.schedulers.registry import scheduler_of

    try:
        scheduler_of(name)
    except ValueError as error:
        raise BadInput(f"--policy {IN_ROUNDS}{name}: {error}") from None
    return name


def _policy(part: RecordedSlice, text: str) -> TrialCandidate:
    """Return a policy with its settings. Raises BadInput."""
    from cli.input.assignments import merge_settings, parse_assignments
    from shared.contracts.pools import ConfigurePool, PoolSettings
    from simulator.engine.candidate import TrialCandidate
    from simulator.engine.models import load_models
    from simulator.recorded.league import policy_settings
    from simulator.recorded.slice import REPLAYED

    policy, *words = text.split(",")
    pool = part.scenario.pool
    changes = parse_assignments(words, PoolSettings, frozenset({"pool", *REPLAYED}))
    settings = policy_settings(pool, policy, changes)
    try:
        merge_settings(ConfigurePool, {"pool": pool.pool}, settings)
        load_models(pool.model_copy(update=settings))
    except ValueError as error:
        raise BadInput(f"--policy {text}: {error}") from None
    return TrialCandidate(text, settings)
