"""`berth what-if` on the folder of a simulation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.errors import BadInput
from cli.main import app
from simulator.engine.candidate import PRESENT
from simulator.engine.recording import dump
from simulator.engine.scenario import POOL
from tests.simulator.recorded.test_pool import recorded

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledgers")
    done, _ = recorded()
    assert done.broker is not None
    dump(done.broker, folder)
    return folder


def test_a_what_if_shows_the_record_the_replay_and_the_policies(
    ledgers: Path, tmp_path: Path
) -> None:
    svg = tmp_path / "plot.svg"
    arguments = ["what-if", "--pool", POOL, "--ledgers", str(ledgers), "--from", "300s"]
    policies = ["--policy", "gittins,preemption=ranked", "--policy", "rounds:fcfs"]
    words = [*arguments, "--warm-up", "300s", *policies, "--svg", str(svg)]
    invoked = CliRunner().invoke(app, [*words, "--json"])
    assert invoked.exit_code == 0, invoked.output
    output = json.loads(invoked.stdout)
    assert output["jobs"]["counted"] > 10
    fidelity = output["fidelity"]["first_wait"]
    assert fidelity["recorded_mean_s"] > 100 and fidelity["mean_absolute_error_s"] < 60
    rows = {row["name"]: row for row in output["rows"]}
    assert list(rows) == ["recorded", PRESENT, "gittins,preemption=ranked", "fcfs, in rounds"]
    assert rows["gittins,preemption=ranked"]["wait_change"]["gain"] < 0
    assert {one["tenant"] for one in rows["recorded"]["tenants"]} == {"red", "blue"}
    assert svg.read_text().startswith("<?xml")
    text = CliRunner().invoke(app, words).stdout
    assert "fidelity of first waits: recorded" in text and "WAIT CHANGE" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "nope"], "base_policy"),
        (["--policy", "fcfs,rank_ms=5"], "unknown setting: rank_ms"),
        (["--policy", "learned:nope"], "learned"),
        (["--policy", "rounds:pollux"], "needs goodput"),
        (["--policy", "rounds:nope"], "must be one of"),
        (["--from", "yesterday"], "--from: 'yesterday'"),
        (["--from", "2023-11-15", "--to", "2023-11-14"], "must be before --to"),
        (["--jobs", "5"], "more than 5 jobs"),
    ],
)
def test_a_what_if_refuses_what_it_cannot_simulate(
    ledgers: Path, words: list[str], message: str
) -> None:
    given = ["what-if", "--pool", POOL, "--ledgers", str(ledgers), *words]
    invoked = CliRunner().invoke(app, given)
    assert isinstance(invoked.exception, BadInput)
    assert message in str(invoked.exception)
