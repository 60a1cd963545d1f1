"""`berth simulate-llm` prints a row per policy, and names what is wrong with its input."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.errors import BadInput
from cli.main import app


@pytest.fixture
def trace(tmp_path: Path) -> str:
    rows = [
        {
            "request_id": str(n),
            "tenant": "ab"[n % 2],
            "arrival_s": n / 10,
            "input_tokens": 20,
            "output_tokens": 5,
        }
        for n in range(30)
    ]
    path = tmp_path / "trace.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def test_each_policy_has_its_measures(trace: str) -> None:
    words = ["simulate-llm", trace, "--policy", "vtc", "--policy", "berth", "--json"]
    result = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert list(result["policies"]) == ["vtc", "berth"]
    assert result["policies"]["berth"]["tenants"]["a"]["requests"] == 15


def test_people_get_tables(trace: str) -> None:
    shown = CliRunner().invoke(app, ["simulate-llm", trace], catch_exceptions=False).stdout
    assert "berth" in shown
    assert "30 requests" in shown


@pytest.mark.parametrize(
    ("words", "rule"),
    [(["--policy", "best"], "'best'; one of fcfs"), (["--batch-tokens", "10"], "do not fit")],
)
def test_bad_input_is_named(trace: str, words: list[str], rule: str) -> None:
    error = CliRunner().invoke(app, ["simulate-llm", trace, *words]).exception
    assert isinstance(error, BadInput)
    assert rule in str(error)
