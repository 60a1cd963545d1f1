"""`berth simulate-retraining` prints a row per policy, and names what is wrong with its input."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.errors import BadInput
from cli.main import app
from simulator.llm.retraining import POLICIES


@pytest.fixture
def trace(tmp_path: Path) -> str:
    names = ("request_id", "tenant", "arrival_s", "input_tokens", "output_tokens")
    rows = [dict(zip(names, (str(n), "ab"[n % 2], n / 2, 60, 20), strict=True)) for n in range(40)]
    path = tmp_path / "trace.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["simulate-retraining", *arguments], catch_exceptions=False)
    return result.stdout


def test_a_row_per_policy_with_waits_and_gaps(trace: str) -> None:
    text = run(trace)
    assert "40 requests of 2 tenants" in text
    assert all(f"\n{name} " in text for name in POLICIES)
    document = json.loads(run(trace, "--policy", "mace", "--freshness-s", "5", "--json"))
    assert document["policies"]["mace"]["updates"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "maze"), "--policy: 'maze'; one of serve_only, periodic"),
        (("--tpot-s", "0"), "tpot_s: 0.0; a number above 0 is allowed"),
    ],
)
def test_errors_name_option_value_and_rule(
    trace: str, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        run(trace, *arguments)
