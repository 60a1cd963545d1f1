"""`berth endpoints plan` prints engines with margins, the bound and the moves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.errors import BadInput
from cli.main import app

HEAD = "adapter,rank,rate_per_s,prompt_tokens,output_tokens"


@pytest.fixture
def adapters(tmp_path: Path) -> Path:
    rows = [f"a{n:02d},{8 if n % 2 else 16},0.05,200,100" for n in range(10)]
    path = tmp_path / "adapters.csv"
    path.write_text("\n".join((HEAD, *rows)))
    return path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["endpoints", "plan", *arguments], catch_exceptions=False)
    return result.exit_code, result.stdout


def test_the_table_has_engines_bound_and_source_of_the_constants(adapters: Path) -> None:
    code, text = run("--adapters", str(adapters))
    assert code == 0
    assert "engine-1  10        16     16" in text
    assert "confirmed" in text
    assert "no plan needs fewer than 1" in text
    assert "arXiv 2508.08343" in text
    assert "moves" not in text


def test_a_plan_is_the_present_one_of_the_next(adapters: Path, tmp_path: Path) -> None:
    _, text = run("--adapters", str(adapters), "--json")
    document = json.loads(text)
    assert document["confirmed"] and document["engines"][0]["margin"] > 0.2
    present = tmp_path / "present.json"
    present.write_text(text)
    _, text = run("--adapters", str(adapters), "--present", str(present))
    assert "0 moves" in text


def test_moves_are_printed(adapters: Path, tmp_path: Path) -> None:
    present = tmp_path / "present.csv"
    rows = (f"{'left' if n < 3 else 'kept'},a{n:02d}" for n in range(10))
    present.write_text("\n".join(("engine,adapter", *rows)))
    _, text = run("--adapters", str(adapters), "--present", str(present))
    assert "3 moves\na00: left -> kept" in text
    _, text = run("--adapters", str(adapters), "--present", str(present), "--moves", "2")
    assert "0 moves" in text


def test_an_engine_that_is_not_confirmed_ends_with_an_error(adapters: Path) -> None:
    adapters.write_text(f"{HEAD}\na,8,2,2000,30000\nb,8,2,2000,30000")
    with pytest.raises(BadInput, match=r"a: 2\.4 requests per s with headroom"):
        run("--adapters", str(adapters))
    bursts = "\n".join(f"a{n},8,1,200,100,9" for n in range(20))
    adapters.write_text(f"{HEAD},cv\n{bursts}")
    code, text = run("--adapters", str(adapters), "--max-wait-s", "0.1")
    assert (code == 1) == ("starves: " in text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "gpt"), "--engine: 'gpt'; one of llama-3.1-8b, qwen2.5-7b"),
        (("--present", "absent.csv"), "absent.csv: cannot be read"),
    ],
)
def test_errors_name_value_and_rule(
    adapters: Path, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        run("--adapters", str(adapters), *arguments)
