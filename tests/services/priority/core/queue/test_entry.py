"""Run times are learnt by command and image: no trace has them, so the workloads are made up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from services.priority.core.history.history import History
from services.priority.core.history.intervals import QUANTILES, read_quantile_s
from shared.contracts.ranking import QueueChanged
from tests.harness.decider import AT, given, run
from tests.services.priority.core.lane import PRIORITY, admitted, only, pool, running, succeeded

Command = Callable[[int, int], str]


def pinball_loss(name: Callable[[int], str], command: Command, spread: float) -> float:
    """Return the loss in log10 s over 900 jobs of six users, each of whom runs five programs whose
    times lie a factor of six apart, times a log-normal factor of that spread.
    """
    rng = np.random.default_rng(11)
    history, losses = History(), list[float]()
    for number in range(900):
        user, program = int(rng.integers(6)), int(rng.integers(5))
        run_s = float(30 * 6.0 ** (0 if spread > 1 else program) * rng.lognormal(3, spread))
        job = ("red", f"u{user}", name(program), 1.0)
        own = command(program, number)
        ended = history.estimate(*job, own).ended
        history.learn(*job, run_s, own)
        if number >= 300:
            errors = [np.log10(run_s / read_quantile_s(ended, q)) for q in QUANTILES]
            losses += [max(q * e, (q - 1) * e) for q, e in zip(QUANTILES, errors, strict=True)]
    return float(np.mean(losses))


def one_name(program: int) -> str:
    return "train"


def name_each(program: int) -> str:
    return f"train-{'abcde'[program]}"


def no_command(program: int, number: int) -> str:
    return ""


def command_each(program: int, number: int) -> str:
    return f"c{program}"


def command_of_the_job(program: int, number: int) -> str:
    return f"c{number}"


@pytest.mark.parametrize(
    ("name", "command", "spread", "least", "most"),
    [
        (one_name, command_each, 0.6, 0.4, 0.7),
        (name_each, command_each, 0.6, 0.5, 0.9),
        (name_each, command_of_the_job, 0.6, 1.0, 1.0),
        (name_each, command_each, 2.0, 0.95, 1.02),
    ],
    ids=["one name for all", "a name for each", "every command differs", "no command says more"],
)
def test_what_commands_gain(
    name: Callable[[int], str], command: Command, spread: float, least: float, most: float
) -> None:
    ratio = pinball_loss(name, command, spread) / pinball_loss(name, no_command, spread)
    assert least <= ratio <= most


@pytest.mark.parametrize(("release", "learns"), [(0, False), (1, True)])
def test_a_job_is_estimated_by_those_of_its_command(release: int, learns: bool) -> None:
    """Before the upgrade is finished no entry has a command."""
    state = given(PRIORITY, pool(release=release))
    long, short = ("python", "train.py"), ("python", "smoke.py")
    for number in range(6):
        at = AT + number * 10_000_000
        jobs = [(f"l{number}", long, 9_000_000), (f"s{number}", short, 60_000)]
        for job, command, ran_ms in jobs:
            entering = admitted(job, user="ann", name="run", command=command)
            changed = only(run(PRIORITY, state, [entering, *running(job, at=at)], at), QueueChanged)
            assert bool(changed.entered[0].command_digest) == learns
            run(PRIORITY, state, [succeeded(job, at + ran_ms)], at + ran_ms)
    at = AT + 70_000_000
    last = [
        admitted(job, user="ann", name="run", command=argv)
        for job, argv in (("l", long), ("s", short))
    ]
    run(PRIORITY, state, last, at)
    long_s, short_s = (state.table.get(state.jobs[job].row, "p50_s") for job in ("l", "s"))
    assert (long_s > short_s) == learns
